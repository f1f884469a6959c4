"""Webhooks as settings have them: addresses, the secret that signs, and what may be reached."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from koi_lang.runtime.guards.file_access import PagePermission
from koi_lang.runtime.guards.hosts import Allowed
from koi_lang.runtime.guards.permissions import Permissions
from koi_lang.runtime.guards.policy import Access, Policy
from koi_lang.service.store import Database
from koi_lang.service.webhook_requests import HookSender
from koi_lang.service.webhooks import Webhooks
from koi_lang.sessions.options import RunOptions
from koi_lang.settings import project
from koi_lang.settings.service import OUTGOING, ServiceSettings


def webhooks_of(
    database: Database, about: ServiceSettings, options: RunOptions, note: Callable[[str], None]
) -> Webhooks:
    """What tells others. Raises SettingsError.

    Args:
        options: of the programs that are served; their settings say what may be reached.
        note: is told what goes wrong.
    """
    allowed = Allowed.of(project.allowed_hosts(options.settings))
    policy = Policy(None, Permissions(options.allowed_here, restrictions=options.restrictions_here))

    def is_refused(host: str) -> bool:
        return not policy.is_open(Access(permission=PagePermission(host), is_open=True))

    secret = about.hook_secrets.get(OUTGOING) or kept_secret(database)
    sender = HookSender(secret.encode(), allowed, is_refused)
    redact = options.key_lookup().redactor()
    return Webhooks(database, about.hooks, sender, redact, public_url=about.public_url, note=note)


def kept_secret(database: Database) -> str:
    """The secret that signs where the settings name none: made once, and kept beside the deliveries."""
    database.execute("create table if not exists service_secrets (name text primary key, value text not null)")
    made = f"whsec_{secrets.token_urlsafe(32)}"
    database.execute("insert into service_secrets values (?, ?) on conflict (name) do nothing", (OUTGOING, made))
    ((value,),) = database.execute("select value from service_secrets where name = ?", (OUTGOING,))
    return str(value)
