"""Services for tests of jobs."""

from __future__ import annotations

from tests.service.conftest import start_service

__all__ = ["start_service"]
