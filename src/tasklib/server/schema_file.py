"""The committed OpenAPI file. `python -m tasklib.server.schema_file` writes it anew."""

from __future__ import annotations

import json
from pathlib import Path

from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.server.app import create_app
from tasklib.server.settings import ServerSettings

FILE = Path(__file__).parent / "openapi.json"


def render() -> str:
    app = create_app(Engine(Config(database_url="memory://")), settings=ServerSettings(token=None))
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(render())
