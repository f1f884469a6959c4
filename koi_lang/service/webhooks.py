"""Webhooks of a service: events are stored first, and delivered for a day in the background."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from koi_lang.errors import KoiError, PermissionDeniedError, capture
from koi_lang.lazy import lazy_module
from koi_lang.rpc.framing import line_of
from koi_lang.runtime.concurrency.cancellation import start_detached
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.guards.file_access import page_permission
from koi_lang.runtime.guards.hosts import Allowed
from koi_lang.runtime.guards.permissions import Permissions
from koi_lang.runtime.guards.policy import Access, Policy
from koi_lang.runtime.journal.entries import Redact
from koi_lang.service.deliveries import PAUSES_S, Delivery, DeliveryTable, new_id
from koi_lang.service.store import Database
from koi_lang.sessions.options import RunOptions
from koi_lang.settings import project
from koi_lang.settings.service import OUTGOING, ServiceSettings
from koi_lang.system.certificates import certificates

if TYPE_CHECKING:
    import httpx2

    from koi_lang.runtime.guards import transport
else:
    httpx2, transport = (lazy_module("httpx2"), lazy_module("koi_lang.runtime.guards.transport"))

# Tries at a time for one address, and in all.
MAX_PER_ADDRESS, MAX_TRIES = 4, 64
# Bytes of a body, and of a field where all of them together would make a larger one.
MAX_BODY_BYTES, MAX_FIELD_BYTES = 256 << 10, 4 << 10
# Seconds between two looks at the clock, which may be set.
LOOK_S = 30.0
# How long a try may take, from the name of the host to the status of the answer.
TRY_S = 10.0


@dataclass(slots=True)
class HookSender:
    """How messages are sent.

    Attributes:
        secret: signs them.
        allowed: what may be reached beside public hosts.
        is_refused: whether the rules of the person refuse a host.
        try_s: how long a try may take.
    """

    secret: bytes
    allowed: Allowed
    is_refused: Callable[[str], bool] = lambda host: False
    try_s: float = TRY_S

    async def send(self, delivery: Delivery, now: float) -> str:
        """Send a message; gives why it has not arrived, which is empty where it has."""
        await asyncio.to_thread(certificates)  # reading them would hold up the loop
        try:
            async with asyncio.timeout(self.try_s):
                status = await self._status(delivery, int(now))
        except TimeoutError:
            return f"no answer within {self.try_s:g} s"
        except KoiError as error:
            return error.message
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            return f"it cannot be reached: {type(error).__name__}"
        if 200 <= status <= 299:
            return ""
        elsewhere = ", and is not followed elsewhere" if 300 <= status <= 399 else ""
        return f"it answered with status {status}{elsewhere}"

    async def _status(self, delivery: Delivery, now: int) -> int:
        host = str(urlsplit(delivery.address).hostname)
        if self.is_refused(host):
            raise PermissionDeniedError(f"`[permissions]` of `koi.toml` denies `{host}`, or asks about it")
        body = delivery.body.encode()
        headers = {
            "content-type": "application/json",
            "user-agent": "koi",
            "koi-event": delivery.event,
            "koi-delivery": delivery.id,
            "koi-signature": f"t={now},v1={signature(self.secret, now, body)}",
        }
        guarded = transport.Guarded(self.allowed, certificates())
        client = httpx2.AsyncClient(transport=guarded, trust_env=False, follow_redirects=False, timeout=None)
        # What comes back is not read, however much it is: the connection ends with the block.
        async with client, client.stream("POST", delivery.address, headers=headers, content=body) as answer:
            return answer.status_code


def signature(secret: bytes, now: int, body: bytes) -> str:
    """The signature of a body with its time: HMAC-SHA256 of `TIME.BODY`, in hexadecimal digits."""
    return hmac.new(secret, b"%d.%s" % (now, body), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class HookEvent:
    """Something that happens.

    Attributes:
        name: such as `run.ended`.
        about: names this very event; it is told once, however often it is heard of.
        run: id of the run; empty for none.
        fields: what is told of it.
    """

    name: str
    about: str
    run: str
    fields: Mapping[str, Any]


class Webhooks:
    """Delivers events to addresses.

    Args:
        hooks: addresses by event.
        redact: takes secrets out of a text.
        public_url: of the service, whose page shows a run; empty where nobody knows it.
        note: is told what goes wrong, without addresses, which may be secret.
        now: seconds since the epoch.

    Attributes:
        note: as above.
    """

    def __init__(
        self,
        database: Database,
        hooks: Mapping[str, Sequence[str]],
        sender: HookSender,
        redact: Redact,
        *,
        public_url: str = "",
        note: Callable[[str], None] = lambda text: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._table = DeliveryTable(database)
        self._hooks = hooks
        self._sender = sender
        self._redact = redact
        self._public_url = public_url
        self.note = note
        self._now = now
        self._news = asyncio.Event()
        self._open: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------ what is told

    @property
    def has_hooks(self) -> bool:
        """Whether anybody wants to know of anything."""
        return bool(self._hooks)

    def tell(self, event: HookEvent) -> None:
        """Store an event for all its subscribers, before this returns. Raises KoiError."""
        for address in self._hooks.get(event.name, ()):
            id, now = new_id(), self._now()
            delivery = Delivery(id, event.name, address, self._body(event, id), event.run, now, now)
            self._table.add(delivery, event.about)
        self._news.set()

    def _body(self, event: HookEvent, id: str) -> str:
        envelope = {"id": id, "event": event.name, "created": int(self._now()), "run": event.run or None}
        if self._public_url and event.run:
            envelope["url"] = f"{self._public_url}/#/run/{event.run}"
        line = line_of({**envelope, "data": event.fields}, self._redact)
        if len(line) > MAX_BODY_BYTES:
            short = {name: value for name, value in event.fields.items() if len(str(value)) < MAX_FIELD_BYTES}
            line = line_of({**envelope, "data": {**short, "is_cut": True}}, self._redact)
        return line.rstrip(b"\n").decode()

    def list_deliveries(self, *, undelivered: bool = False) -> list[dict[str, Any]]:
        """The deliveries, the newest first, without the bodies; on request only the undelivered ones."""
        return [delivery.as_data() for delivery in self._table.all(undelivered=undelivered)]

    # ------------------------------------------------------------ sending

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """A context in which deliveries are sent; interrupted ones are repeated in the next one."""
        self._table.begin(self._now(), {address for addresses in self._hooks.values() for address in addresses})
        async with together() as group:
            task = start_detached(group, self._send_all(group))
            try:
                yield
            finally:
                for each in (task, *self._tasks):
                    each.cancel()

    async def _send_all(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._news.clear()
            wait_s = LOOK_S
            try:
                wait_s = self._begin_due(group)
            except KoiError as error:
                self.note(error.message)
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                continue

    def _begin_due(self, group: asyncio.TaskGroup) -> float:
        """Begin due deliveries that need not wait for others; returns the seconds until the next one."""
        now = self._now()
        while self._open.total() < MAX_TRIES:
            busy = [address for address, number in self._open.items() if number >= MAX_PER_ADDRESS]
            delivery = self._table.next(now, busy)
            if delivery is None:
                break
            self._table.begin_try(delivery.id)
            self._open[delivery.address] += 1
            task = start_detached(group, self._try(delivery))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        due = self._table.next_due(now)
        return LOOK_S if due is None else min(LOOK_S, due - now)

    async def _try(self, delivery: Delivery) -> None:
        """Attempt a delivery once; its failures stay its own."""
        ended = await capture(self._sender.send(delivery, self._now()))
        problem = ended.value if ended.error is None else f"it cannot be sent: {type(ended.error).__name__}"
        self._open[delivery.address] -= 1
        try:
            self._note_end(delivery, problem or "")
        except KoiError as error:
            self.note(error.message)
        self._news.set()

    def _note_end(self, delivery: Delivery, problem: str) -> None:
        now = self._now()
        if not problem:
            self._table.end_try(delivery.id, "delivered", now)
        elif delivery.tries < len(PAUSES_S):
            self._table.end_try(delivery.id, "waiting", now + PAUSES_S[delivery.tries], problem)
        else:
            self._table.end_try(delivery.id, "failed", now, problem)
            self.note(f"the delivery `{delivery.id}` of `{delivery.event}` was given up: {problem}")


def webhooks_of(
    database: Database, about: ServiceSettings, options: RunOptions, note: Callable[[str], None]
) -> Webhooks:
    """The webhooks of a service. Raises SettingsError.

    Args:
        options: of the programs that are served; their settings say what may be reached.
        note: is told what goes wrong.
    """
    allowed = Allowed.of(project.allowed_hosts(options.settings))
    policy = Policy(None, Permissions(options.allowed_here, restrictions=options.restrictions_here))

    def is_refused(host: str) -> bool:
        return not policy.is_open(Access(permission=page_permission(host), is_open=True))

    secret = about.hook_secrets.get(OUTGOING) or kept_secret(database)
    sender = HookSender(secret.encode(), allowed, is_refused)
    redact = options.redact
    return Webhooks(database, about.hooks, sender, redact, public_url=about.public_url, note=note)


def kept_secret(database: Database) -> str:
    """The secret that signs where the settings name none: made once, and kept beside the deliveries."""
    database.execute("create table if not exists service_secrets (name text primary key, value text not null)")
    made = f"whsec_{secrets.token_urlsafe(32)}"
    database.execute("insert into service_secrets values (?, ?) on conflict (name) do nothing", (OUTGOING, made))
    ((value,),) = database.execute("select value from service_secrets where name = ?", (OUTGOING,))
    return str(value)
