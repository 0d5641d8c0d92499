"""The OpenAPI file: the committed one is the one in force, and the server keeps to it, whatever it is sent."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    use_after_free,
)

from tasklib.server.claim_schemas import LONGEST_WAIT
from tasklib.server.schema_file import FILE, render
from tests.server.conftest import TOKEN
from tests.server.serving import Server, serving

EXAMPLES = 10
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    use_after_free,
    allow_header_conformance,
    ignored_auth,
]
SEQUENCE_CHECKS = [check for check in CHECKS if check is not negative_data_rejection]
"""There a request counts as wrong when it lacks the token, which this test adds to every one."""
HEADERS = {"Authorization": f"Bearer {TOKEN}"}

# Streams have no end to wait for.
schema = schemathesis.openapi.from_dict(json.loads(FILE.read_text())).exclude(path="/api/events")


def unhurried(case: Case[Any]) -> Case[Any]:
    """Who waits for what never comes takes all the time allowed; the rest of the request stays as it is."""
    for given in (case.body, case.query):
        if isinstance(given, dict) and _is_wait(given.get("waitSeconds")):
            given["waitSeconds"] = 0
    return case


def _is_wait(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_WAIT


def test_the_committed_file_is_the_schema():
    assert FILE.read_text() == render(), "write it anew: python -m tasklib.server.schema_file"


def test_the_schema_says_how_errors_look():
    document = json.loads(FILE.read_text())
    assert "422" not in FILE.read_text()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            public = operation.get("security") == []
            for status in ("400", "401", "403", "503"):
                assert status in operation["responses"] or public, (method, path, status)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("schema")
    # Run by Python when it starts. Each wrong token, of which there are many here, would wait for its turn.
    (folder / "sitecustomize.py").write_text("from tasklib.server import tokens\ntokens.REREAD_SECONDS = 0.001\n")
    env = {
        "TASKLIB_DATABASE_URL": f"sqlite:///{folder}/tasks.db",
        "TASKLIB_TOKEN": TOKEN,
        "PYTHONPATH": str(folder),
    }
    with serving(folder, env=env) as server:
        yield server


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_any_request(case: Case[Any], server: Server):
    # A list in place of a text goes into the query as its text, which is as good as any other.
    lists = any(isinstance(value, list) for value in (case.query or {}).values())
    checks = SEQUENCE_CHECKS if lists else CHECKS
    unhurried(case).call_and_validate(base_url=server.url, headers=HEADERS, checks=checks)


def test_any_sequence_of_requests(server: Server):
    class Requests(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Case[Any]) -> dict[str, object]:
            unhurried(case)
            return {"base_url": server.url, "headers": HEADERS}

        def validate_response(self, response: Any, case: Case[Any], **options: object) -> None:
            case.validate_response(response, checks=SEQUENCE_CHECKS)

    Requests.run(
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=6,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        )
    )
