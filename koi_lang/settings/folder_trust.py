"""Trust in a folder: the widenings in its settings files, and the person's decision about them.

A clone of a stranger brings `koi.toml` and other files. What narrows a run, such as `deny` and `[limits]`, always
counts; what widens it, such as `allow` and a `base_url`, counts once the person has agreed. They agree to a digest of
what widens, so that a change of it is asked about and a change of the rest is not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from koi_lang.errors import reason
from koi_lang.settings.project_record import ProjectRecord
from koi_lang.settings.service_keys import find_foreign_key, forget_key, note_key
from koi_lang.system.loopback import is_loopback_url
from koi_lang.system.open_folders import SERVICE_KEY

FOLDER = "trust"
# How many of the widening settings stand in the line for runs in which they do not count, and how much of each and of
# the names of the others.
MAX_NOTED, MAX_CHARS = 3, 200
DIGEST = "digest"
KEY = "key"
IS_TRUSTED = "trusted"
RULES = "rules"
# Lists of rules that narrow, in `[permissions]` and of MCP servers, and words of `[trust]` that do.
NARROWING_LISTS, NARROWING_WORDS = ("ask", "deny"), ("ask", "never")
ADDRESS, KEYS = "_BASE_URL", ("_API_KEY", "_BEARER_TOKEN_BEDROCK")
LOCAL_KEY = "LOCAL_API_KEY"
# Providers at an address of this machine that are sent no key but the one that was connected with this address.
LOCAL_PROVIDERS = ("local", "ollama")
VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)")

KeyPath: TypeAlias = tuple[str, ...]
# Settings that widen: their keys in a table, their values, and what they do.
FoundSettings: TypeAlias = Iterator[tuple[KeyPath, Any, str]]
# Parsed settings files by name; one that is missing or broken has no entry.
ParsedFiles: TypeAlias = Mapping[str, Any]
# What is shown first: what lets agents do more, then what is started, then where texts and keys go.
DANGEROUS: Sequence[KeyPath] = (
    (SERVICE_KEY,),
    ("koi.toml", "shell", "sandbox"),
    ("koi.toml", "permissions"),
    ("koi.toml", "shell", "allow"),
    ("koi.toml", "trust", "run"),
    ("koi.toml", "trust", "write"),
    ("koi.toml", "shell", "home"),
    (".mcp.json",),
    ("koi.toml", "mcp"),
    ("koi.toml", "models"),
    (".env",),
    ("koi.toml", "trust"),
    ("koi.toml", "a2a"),
    ("koi.toml", "http"),
)
# What settings of sections do, as far as they always widen.
TEXTS: Mapping[str, str] = {
    "a2a.tokens": "tokens are sent to ",
    "http.allow": "programs reach hosts of your network: ",
    "memory.keep": "lessons of unattended work, for which a model is asked, are: ",
    "permissions.allow": "allowed without a question: ",
    "serve.hooks": "a service tells of its runs at ",
    "serve.http": "a service listens at ",
    "serve.origins": "a service answers pages of ",
    "serve.programs": "a service serves ",
    "serve.public_url": "clients of a service are sent to ",
    "serve.record_dir": "a service works in the folder ",
    "serve.users": "a service lets in ",
    "shell.allow": "commands run without a question: ",
    "shell.home": "commands see of your home folder: ",
    "web.search": "what is searched for is sent to ",
}


@dataclass(frozen=True, slots=True)
class Widening:
    """One setting that widens the permissions of a run.

    Attributes:
        keys: the name of the file, and the keys that lead to the setting in it.
        value: as it stands in the file.
        text: what it does, for the person; empty where another one says it.
    """

    keys: KeyPath
    value: Any
    text: str


@dataclass(frozen=True, slots=True)
class FolderTrust:
    """The widenings in the settings files of a folder, and the person's decision about them.

    Attributes:
        config: the folder of the person's configuration.
        foreign_key: the fingerprint of a key of a service that the folder has brought; empty where there is none.
    """

    record: ProjectRecord
    config: Path
    widenings: Sequence[Widening]
    settings_digest: str
    foreign_key: str = ""
    rules: Sequence[Sequence[str]] = ()

    @property
    def texts(self) -> list[str]:
        """The widenings, a clause each, the most dangerous first."""
        return [text for _, text in self._named_texts]

    @property
    def lifted_rules(self) -> list[Sequence[str]]:
        """Restrictions from the time of the decision that are gone, for no stricter ones: their keys and values."""
        content = self.record.read()
        known = content.get(RULES, ()) if content.get(IS_TRUSTED) else ()
        return [rule for rule in known if rule not in self.rules and _make_stricter(rule) not in self.rules]

    @property
    def digest(self) -> str:
        """The digest of the widenings that the person agrees to."""
        return self.settings_digest + self.foreign_key + "".join(map(str, self.lifted_rules))

    @property
    def note(self) -> str:
        """The line for runs in which these settings do not count."""
        clauses = [text for _, text in self._named_texts[:MAX_NOTED]]
        if others := dict.fromkeys(name for name, _ in self._named_texts[MAX_NOTED:]):
            clauses.append(f"and {_quote(list(others))}")
        listed = "; ".join(each if len(each) <= MAX_CHARS else f"{each[:MAX_CHARS]}…" for each in clauses)
        return f"settings of this folder do not count before you trust it (`koi trust`): {listed}"

    @property
    def _named_texts(self) -> list[tuple[str, str]]:
        """The settings of these clauses, with at most two of the keys that lead to each, and the clauses."""
        rules = ((".".join(keys), _quote(rule)) for *keys, rule in self.lifted_rules)
        lifted = [(name, f"{rule} is not in `{name}` any more") for name, rule in rules]
        ordered = sorted(self.widenings, key=lambda each: [each.keys[: len(first)] != first for first in DANGEROUS])
        return lifted + [(".".join(each.keys[1:3]) or each.keys[0], each.text) for each in ordered if each.text]

    @property
    def is_trusted(self) -> bool:
        """Whether all of the settings count: nothing of them widens, or the person has agreed to it."""
        return not self.widenings or self.answer is True

    @property
    def answer(self) -> bool | None:
        """The person's decision about exactly these widenings; None before they were asked."""
        content = self.record.read()
        decided = (content.get(DIGEST), content.get(KEY, ""))
        is_same = decided == (self.settings_digest, self.foreign_key) and not self.lifted_rules
        return content.get(IS_TRUSTED) is True if is_same else None

    def save(self, *, is_trusted: bool) -> str:
        """Store the person's decision; returns the reason of a failure, so that they are asked again.

        A key of a service that they accept counts in this folder, and is not asked about again.
        """
        content = {DIGEST: self.settings_digest, IS_TRUSTED: is_trusted, RULES: self.rules}
        try:
            if is_trusted and self.foreign_key:
                note_key(self.foreign_key, self.record.project, self.config)
            elif self.foreign_key:
                content[KEY] = self.foreign_key
            self.record.write(content)
        except OSError as error:
            return f"`{self.record.file or self.config}` cannot be written: {reason(error)}"
        return ""


def find_trust(folder: Path, files: ParsedFiles, config: Path) -> FolderTrust:
    """The trust in a folder with some settings files.

    Args:
        config: the folder of the person's configuration.
    """
    foreign_key = find_foreign_key(files.get(SERVICE_KEY) or "", folder, config)
    widenings = sorted(_widenings({**files, SERVICE_KEY: foreign_key}), key=lambda each: each.keys)
    settings = [[each.keys, each.value] for each in widenings if each.keys != (SERVICE_KEY,)]
    settled = json.dumps(settings, sort_keys=True, default=str)
    # What is filled into a setting that the person agrees to is a part of it.
    variables = files.get(".env", {})
    filled = {name: variables[name] for name in VARIABLE.findall(settled) if name in variables}
    digest = hashlib.sha256(json.dumps([settled, filled], sort_keys=True).encode()).hexdigest()
    record = ProjectRecord.of(folder, config / FOLDER)
    trust = FolderTrust(record, config, widenings, digest, foreign_key, list(_rules(files)))
    if trust.answer and trust.record.read().get(RULES) != trust.rules:
        trust.save(is_trusted=True)  # with rules that are new, so that it is noticed when they go
    return trust


def trusted_folders(config: Path) -> list[Path]:
    """The folders that the person trusts."""
    return [each.project for each in ProjectRecord.find_all(config / FOLDER) if each.read().get(IS_TRUSTED) is True]


def forget_trust(folder: Path, config: Path) -> bool:
    """Forget the decision about a folder, and its key of a service; returns whether there was one."""
    record, had_key = ProjectRecord.of(folder, config / FOLDER), forget_key(folder, config)
    if record.file is None or not record.file.is_file():
        return had_key
    record.file.unlink()
    return True


def narrow(name: str, document: Any) -> Any:
    """The content of a settings file without its widenings."""
    for each in _widenings({name: document}):
        document = _without(document, each.keys[1:])
    return document


def _without(table: Mapping[str, Any], keys: KeyPath) -> dict[str, Any]:
    first, rest = keys[0], keys[1:]
    if rest:
        return {**table, first: _without(table[first], rest)}
    return {name: value for name, value in table.items() if name != first}


def _widenings(files: ParsedFiles) -> Iterator[Widening]:
    for section, settings in _table(files.get("koi.toml")).items():
        find = _of_servers if section == "mcp" else partial(_of_section, section)
        for keys, value, text in find(_table(settings)):
            yield Widening(("koi.toml", section, *keys), value, text)
    for keys, value, text in _of_servers(_table(_table(files.get(".mcp.json")).get("mcpServers"))):
        yield Widening((".mcp.json", "mcpServers", *keys), value, text)
    registry = _table(_table(files.get(".koi-config.json")).get("registry"))
    # A link that a clone brings with it may lead anywhere, so no path is harmless.
    if path := _table(registry.get("options")).get("path"):
        yield Widening((".koi-config.json", "registry"), registry, f"the registry is kept in {_quote(path)}")
    if key := files.get(SERVICE_KEY):
        yield Widening((SERVICE_KEY,), key, "sessions of this folder go on, with what was allowed in them")
    variables = _table(files.get(".env"))
    for name, value in variables.items():
        is_local = name.removesuffix(ADDRESS).lower() in LOCAL_PROVIDERS
        if name.endswith(ADDRESS) and not (is_local and is_loopback_url(value)):
            yield Widening((".env", name), value, f"models are asked at {_quote(value)}")
            if is_local and LOCAL_KEY in variables:  # it is for this address and no other
                yield Widening((".env", LOCAL_KEY), variables[LOCAL_KEY], "")
        if name.endswith(KEYS) and name != LOCAL_KEY:
            # The owner of an account may see what is asked for with its key.
            yield Widening((".env", name), value, f"the account of {_quote(name)} in `.env` is used")


def _rules(files: ParsedFiles) -> Iterator[list[str]]:
    """The restrictions: the keys that lead to each, and its value."""
    koi, servers = _table(files.get("koi.toml")), _table(_table(files.get(".mcp.json")).get("mcpServers"))
    tables: dict[KeyPath, Any] = {("permissions",): koi.get("permissions")}
    tables |= {("mcp", name): about for name, about in _table(koi.get("mcp")).items()}
    tables |= {("mcpServers", name): about for name, about in servers.items()}
    for keys, table in tables.items():
        for name in NARROWING_LISTS:
            yield from ([*keys, name, str(rule)] for rule in _as_list(_table(table).get(name)))
    yield from (["trust", topic, word] for topic, word in _table(koi.get("trust")).items() if word in NARROWING_WORDS)


def _make_stricter(rule: Sequence[str]) -> list[str]:
    """A restriction that asks as the one that forbids the same; any other as it is."""
    if rule[0] == "trust":
        return [*rule[:-1], "never" if rule[-1] == "ask" else rule[-1]]
    return [*rule[:-2], "deny" if rule[-2] == "ask" else rule[-2], rule[-1]]


def _of_section(section: str, settings: Mapping[str, Any]) -> FoundSettings:
    """The widenings in a section of `koi.toml`."""
    for name, value in settings.items():
        text = TEXTS.get(f"{section}.{name}", "")
        match section, name:
            case "shell", "sandbox":
                text = "commands run outside of the sandbox" if value == "none" else ""
            case "trust", _:
                text = f"whatever is about {_quote(name)} is done without a question" if value == "act" else ""
            case "models", _:
                addresses = list(_addresses(value))
                text = f"the model {_quote(name)} is asked at {_quote(addresses)}" if addresses else ""
            case "serve", "hooks":
                hooks = [str(address) for each in _table(value).values() for address in _as_list(each)]
                text += _quote(list(dict.fromkeys(hooks)))
            case "serve", "hook_secrets":
                text = f"a service takes messages that are signed, for {_quote(list(_table(value)))}"
            case "serve", _ if name != "limits":
                text = (text or f"a service has {_quote(name)}: ") + _quote(value)
            case _ if text:  # of rules the shortest first, which mean most
                text += _quote(sorted(value, key=lambda each: len(str(each))) if isinstance(value, list) else value)
        if text:
            yield (name,), value, text


def _addresses(options: Any) -> Iterator[str]:
    """The addresses to which a model leads, but for those of this machine that get no key."""
    if isinstance(options, str):
        options = {"model": options}
    options = _table(options)
    provider, model, address = (options.get(name) for name in ("provider", "model", "base_url"))
    if isinstance(model, str) and re.match("https?://", model, re.IGNORECASE) and not is_loopback_url(model):
        yield model
    named = str(provider or str(model or "local").partition("/")[0]).lower()
    if address is not None and not (named in LOCAL_PROVIDERS and is_loopback_url(str(address))):
        yield str(address)
    fallback = options.get("fallback")
    for each in fallback if isinstance(fallback, list) else ():
        yield from _addresses(each)


def _of_servers(servers: Mapping[str, Any]) -> FoundSettings:
    """The widenings in the descriptions of MCP servers: all fields that do not restrict their use."""
    for name, about in servers.items():
        server = f"the MCP server {_quote(name)}"
        for option, value in _table(about).items():
            match option:
                case "ask" | "deny":
                    continue
                case "command":
                    text = f"{server} is started: {_quote(' '.join(map(str, [value, *_as_list(about.get('args'))])))}"
                case "args" if "command" in about:
                    text = ""
                case "url":
                    text = f"{server} is asked at {_quote(value)}"
                case "allow":
                    text = f"tools of {server} are used without a question: {_quote(value)}"
                case _:
                    text = f"{_quote(option)} of {server}: {_quote(value)}"
            yield (name, option), value, text


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _quote(value: Any) -> str:
    """A value for the person, on one line; of a table only the names, since the values may be secrets."""
    texts = [" ".join(str(each).split()) for each in (value if isinstance(value, dict) else _as_list(value))]
    # Nothing in a stranger's file moves the cursor or turns the direction of writing.
    shown = ("".join(letter if letter.isprintable() else "\ufffd" for letter in text) for text in texts)
    return ", ".join(f"`{text}`" for text in shown)
