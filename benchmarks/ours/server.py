"""The REST API in uvicorn, with two more handlers that answer a constant: through the same middleware and the same
authentication, so that what is compared is the queue and not the web framework."""

import logging
from typing import Any

import uvicorn

from benchmarks.contender import Contender
from benchmarks.ours import tasks
from tasklib import Config
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app
from tasklib.server.schemas import Submit, Submitted
from tasklib.server.service import Served

TOKEN = "a-token-for-the-benchmark"
ID = "0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10"
CREATED = "2026-01-31T12:00:00Z"


class Server(Contender):
    """Options: `port`."""

    def work(self) -> None:
        assert tasks
        app = create_app(Engine(Config(database_url=self.url)), settings=ServerSettings(token=TOKEN))

        @app.post("/api/constant", status_code=201, response_model=Submitted)
        async def post_constant(given: Submit, service: Served) -> Any:
            return {"id": ID, "type": given.type, "status": "pending", "createdAt": CREATED, "validated": True}

        @app.get("/api/constant")
        async def get_constant(service: Served) -> Any:
            return {"id": ID, "type": "noop", "status": "pending", "createdAt": CREATED}

        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        uvicorn.run(app, host="127.0.0.1", port=self.options["port"], log_level="warning", access_log=False)
