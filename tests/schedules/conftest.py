"""Services for tests of jobs."""

from __future__ import annotations

from tests.service.conftest import closed_databases, start_service

__all__ = ["closed_databases", "start_service"]
