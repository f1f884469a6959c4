"""Users of services in tests, with their tokens."""

from __future__ import annotations

from dataclasses import replace

from koi_lang.service.users import hash_of
from tests.service.serving_process import ServiceProcess

TOKENS = {"ada": "koi_ada-0123456789", "bob": "koi_bob-0123456789", "root": "koi_root-0123456789"}
SETTINGS = f"""
[serve.users]
ada = "{hash_of(TOKENS["ada"])}"
bob = {{ token = "{hash_of(TOKENS["bob"])}", sessions = 2 }}
root = {{ token = "{hash_of(TOKENS["root"])}", admin = true }}
"""


def as_user(service: ServiceProcess, name: str) -> ServiceProcess:
    """The service as a user sees it."""
    return replace(service, token=TOKENS[name])
