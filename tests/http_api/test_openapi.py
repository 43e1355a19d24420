"""The OpenAPI document: it is one, it leaves out no verb, and answers are as it says, to whatever it allows to ask."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from schemathesis.engine import Status, events, from_schema

from http_verbs import made
from nacre.serialization.routes import PREFIX, ROUTES
from openapi_checks import check_operation, document
from servers import ThreadServer, error_of, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    folder = tmp_path_factory.mktemp("openapi")
    with serving(folder / "memories.db", backups=folder / "backups") as served:
        yield served


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, several in document()["paths"].items():
        for method, operation in several.items():
            yield path, method.upper(), operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_each_verb_is_in_the_document_in_each_of_its_ways() -> None:
    found = {(path, method): operation["operationId"] for path, method, operation in operations()}
    for name, route in ROUTES.items():
        assert found.pop((PREFIX + route.path, route.method)) == name
        if route.posts:
            assert found.pop((PREFIX + route.path, "POST")) == f"{name}_by_post"
    assert found == {
        ("/v1/memories/{memory_id}", "GET"): "get_one",
        ("/v1/session", "GET"): "session",
        ("/v1/evaluation", "GET"): "evaluation",
    }


def test_what_it_refers_to_is_there_and_used() -> None:
    components = document()["components"]["schemas"]
    used = {each.removeprefix("#/components/schemas/") for each in references(document())}
    assert used == components.keys()
    for each in components.values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **each})


def test_it_says_what_each_operation_takes_and_gives() -> None:
    tags = {each["name"] for each in document()["tags"]}
    for path, method, operation in operations():
        assert operation["summary"].endswith("."), path
        assert set(operation["tags"]) <= tags
        in_path = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert [f"{{{each}}}" for each in in_path] == [each for each in path.split("/") if each.startswith("{")]
        named = [(each["in"], each["name"]) for each in operation["parameters"]]
        assert len(named) == len(set(named)), path
        assert ("requestBody" in operation) <= (method not in ("GET", "DELETE"))
        good = [status for status in operation["responses"] if status < "300"]
        assert len(good) == 1, path


def test_it_is_served_as_it_is(server: ThreadServer) -> None:
    with server.client() as client:
        answer = client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == document() == json.loads(json.dumps(document()))


def test_answers_that_are_no_verb_are_as_documented(server: ThreadServer) -> None:
    world = made(server.root, "default", "documented")
    with server.client() as client:
        for path, template in (
            ("/v1/session", "/v1/session"),
            ("/v1/evaluation", "/v1/evaluation"),
            (f"/v1/memories/{world.memory}?entities=true&neighbours=2", "/v1/memories/{memory_id}"),
            (f"/v1/memories/{world.newer}", "/v1/memories/{memory_id}"),
        ):
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
            check_operation(answer, template, "GET")
        known = client.get(f"/v1/memories/{world.memory}").headers["etag"]
        answer = client.get(f"/v1/memories/{world.memory}", headers={"If-None-Match": known})
        check_operation(answer, "/v1/memories/{memory_id}", "GET")
        for path, method, operation in operations():
            if method != "POST" or operation["operationId"].endswith("_by_post"):
                continue
            wrong = client.post(path.replace("{memory_id}", "unknown"), content=b"{")
            check_operation(wrong, path, method)
            error_of(wrong, 400)


# ---------------------------------------------------------------- whatever it allows to ask

# It calls what is valid and what is not. These checks expect that the document says all of what is refused.
LENIENT = ("positive_data_acceptance", "negative_data_rejection", "missing_required_header", "unsupported_method")


@schemathesis.serializer("application/x-ndjson")
def lines_of(_: Any, value: Any) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_undocumented_is_answered_to_whatever_is_asked(server: ThreadServer) -> None:
    """One request after the other, also with ids of answers before. The seed makes each run the same."""
    made(server.root, "default", "asked")
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    config = schema.config
    config.seed = 1
    config.generation.max_examples = 8
    config.generation.database = None
    config.phases.examples.enabled = False
    config.phases.coverage.generation.modes = [schemathesis.GenerationMode.POSITIVE]
    for name in LENIENT:
        getattr(config.checks, name).enabled = False
    asked: Counter[int] = Counter()
    failed: dict[str, str] = {}
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            asked.update(
                each.response.status_code for each in event.recorder.interactions.values() if each.response is not None
            )
            for checks in event.recorder.checks.values():
                for each in checks:
                    if each.status is Status.FAILURE and each.failure_info is not None:
                        failed[str(each.failure_info.failure)] = each.failure_info.code_sample
        elif isinstance(event, events.NonFatalError | events.FatalError):
            raise AssertionError(str(event))
    assert failed == {}
    assert asked.keys() & {200, 204, 400, 404} == {200, 204, 400, 404}
    assert not {status for status in asked if status >= 500}
    assert sum(asked.values()) > 500
