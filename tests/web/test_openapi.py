"""The OpenAPI document: official validators accept it, and it says of handlers what their types say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from koi_lang.runtime.journal.totals import RunUsage
from koi_lang.service.run_listing import RunListing
from koi_lang.web.api_schemas import SCHEMAS
from koi_lang.web.openapi import document_of
from koi_lang.web.operations import OPERATIONS, START, routes_of

POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
SHAPE = {
    "type": "object",
    "properties": {"at": {"$ref": "#/$defs/Point"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/Shape"}}},
    "required": ["at"],
}
DRAWN = {**SHAPE, "$defs": {"Point": POINT, "Shape": SHAPE}}


def handler(name: str, schema: Mapping[str, Any], **about: Any) -> dict[str, Any]:
    """A handler as `GET /program` gives it."""
    usual = {"affordance": "", "playbook": False, "private": False, "takes": "", "gives": "", "result": None}
    return {"name": name, "schema": schema, **usual, **about}


def program(name: str, *handlers: Mapping[str, Any], **about: Any) -> dict[str, Any]:
    """A program of one agent."""
    agent = {"name": "Pàinter", "affordance": "paints", "role": "Worker", "handlers": list(handlers)}
    return {"name": name, "path": f"/{name}", "ok": True, "agents": [agent], "chat": [], **about}


DRAW = handler("draw", DRAWN, affordance="draw a shape", result={"type": "string"})
PING, HIDDEN = handler("ping", {}), handler("hidden", POINT, private=True)
ONE = document_of([program("art.koi", DRAW, PING, HIDDEN)], "1.0")
TWO = document_of([program("art.koi", DRAW), program("art 2.koi", DRAW), {"name": "bad", "ok": False}], "1.0")


def takes(document: Mapping[str, Any], body: Any) -> bool:
    """Whether `POST /runs` takes a body, as a validator reads the document."""
    whole = Resource.from_contents(document, default_specification=DRAFT202012)
    known = Registry().with_resource("", whole)
    schema = {"$ref": f"#/components/schemas/{START}"}
    return Draft202012Validator(schema, registry=known, _resolver=known.resolver("")).is_valid(body)


@pytest.mark.parametrize("document", [ONE, TWO, document_of([], "1.0")], ids=["one", "two", "none"])
def test_it_is_an_openapi_document(document: Mapping[str, Any]) -> None:
    """An official validator finds nothing wrong, whatever names and types programs have."""
    assert [] == [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]


@pytest.mark.parametrize(
    ("body", "is_right"),
    [
        ({"handler": "Pàinter.draw", "payload": {"at": {"x": 1}, "parts": [{"at": {"x": 2}}]}}, True),
        ({"handler": "Pàinter.draw", "payload": {"at": {"x": 1}, "parts": [{"at": {}}]}}, False),
        ({"handler": "Pàinter.draw"}, False),
        ({"handler": "Pàinter.ping"}, True),
        ({"handler": "Pàinter.ping", "payload": [1]}, True),
        ({"handler": "Pàinter.hidden", "payload": {"x": 1}}, False),
        ({"handler": "Pàinter.draw", "payload": {"at": {"x": 1}}, "mesage": "hi"}, False),
        ({"message": "hi"}, True),
        ({"program": "art.koi"}, True),
        ({"program": "other.koi"}, False),
        ([], False),
    ],
)
def test_a_run_is_started_as_types_say(body: Any, is_right: bool) -> None:
    """What starts a run is one of: a handler with a payload of its type, a message, a session without a call."""
    assert is_right == takes(ONE, body)


def test_of_several_programs_a_call_says_which() -> None:
    """Handlers of one name in two programs are told apart by the name of the program."""
    call = {"handler": "Pàinter.draw", "payload": {"at": {"x": 1}}}

    assert (False, True) == (takes(TWO, call), takes(TWO, {"program": "art 2.koi", **call}))


def test_results_are_schemas_of_the_document() -> None:
    """A client that is generated has the types of what handlers give."""
    assert {"type": "string"} == ONE["components"]["schemas"]["P_inter.draw.result"]


def test_an_operation_is_a_route_and_a_path() -> None:
    """The routes of the app and the paths of the document come from one table, none twice."""

    async def endpoint(request: Any) -> None:
        raise AssertionError(request)

    routes = routes_of({each.name: endpoint for each in OPERATIONS})
    paths = {(path, method) for path, methods in ONE["paths"].items() for method in methods}
    found = {
        (route.path.removeprefix("/api").replace(":path}", "}"), method.lower())
        for route in routes
        for method in route.methods or ()
        if method != "HEAD"
    }

    assert found - paths == {("/command", "post")}
    assert (set(), len(OPERATIONS)) == (paths - found, len({each.name for each in OPERATIONS}))


def test_a_run_is_described_as_it_is_listed() -> None:
    """The schema of a run has the fields that each listing has."""
    listing = RunListing("a", "desk", "ada", "idle", "tea", 1.0, RunUsage(2.0), None, hosted=True).as_data()

    assert sorted(SCHEMAS["Run"]["properties"]) == sorted(listing)
