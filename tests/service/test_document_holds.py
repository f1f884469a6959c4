"""The service and its OpenAPI document say the same: no request made of it breaks the service, right or wrong."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.serving_process import ServiceProcess

# These follow a run for as long as it lasts, or ask others over the network.
OTHERS = {"events", "listModels"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
START: dict[str, Any] = {"handler": "Editor.start", "payload": {"topic": "tea"}}


def send_requests(service: ServiceProcess, operation: Any, count: int, mode: GenerationMode) -> None:
    """Send requests of an operation, to a run that there is, and look at what is answered."""
    run = service.begin(**START)
    given_mode = operation.as_strategy(generation_mode=mode)

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=given_mode)
    def send(case: Case) -> None:
        if case.path_parameters and "id" in case.path_parameters:
            case.path_parameters["id"] = run
        answer = case.call(base_url=f"{service.url}/api", headers={"Authorization": f"Bearer {service.token}"})
        case.validate_response(answer, checks=CHECKS)

    send()


@pytest.mark.parametrize("count", [1, pytest.param(200, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_the_service_does_what_its_document_says(service: ServiceProcess, count: int, mode: GenerationMode) -> None:
    """No request breaks it, and answers have the status, type and form that is written down."""
    schema = schemathesis.openapi.from_dict(service.get("api/openapi.json"))
    operations = [each.ok() for each in schema.get_all_operations()]
    chosen = [each for each in operations if each.definition.raw["operationId"] not in OTHERS]
    problems = []
    for operation in chosen:
        try:
            send_requests(service, operation, count, mode)
        except Unsatisfiable:
            continue  # there is nothing that could be wrong with its requests
        except (FailureGroup, Failure, ExceptionGroup) as error:
            problems.append(f"{operation.label}: {list(getattr(error, 'exceptions', [error]))}")

    assert [] == problems
    assert len(chosen) > 20
