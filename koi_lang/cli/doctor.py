"""`koi doctor`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from koi_lang.cli.ui.text import GREEN, RED, YELLOW, Theme, count_text, look_of
from koi_lang.errors import EXIT_FAILED, EXIT_OK, KoiError
from koi_lang.health import files, machine, project, providers, service
from koi_lang.health.findings import Finding
from koi_lang.settings import read_settings
from koi_lang.setup.keys.lookup import Keys
from koi_lang.system.text_width import clean

MARKS = {"ok": ("ok     ", GREEN), "warning": ("warning", YELLOW), "error": ("error  ", RED)}


@click.command()
@click.option("--offline", is_flag=True, help="Ask nobody over the network.")
@click.option("--start-servers", is_flag=True, help="Start the MCP servers of the programs here, and list their tools.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list of findings.")
def command(offline: bool, start_servers: bool, as_json: bool) -> None:
    """Look for what keeps programs from running, and say what mends it. Ends with 1 when something is broken."""
    findings, look = [], look_of(sys.stdout)
    for finding in _findings(Path.cwd(), offline=offline, start_servers=start_servers):
        findings.append(finding)
        if not as_json:
            click.echo(_line(finding, look), color=look.colour)
    click.echo(json.dumps([finding.as_data() for finding in findings], indent=2) if as_json else _summary(findings))
    sys.exit(EXIT_FAILED if any(finding.level == "error" for finding in findings) else EXIT_OK)


def _findings(folder: Path, *, offline: bool, start_servers: bool) -> Iterator[Finding]:
    settings = read_settings(folder)
    yield from machine.python()
    yield from machine.packages()
    yield from files.grammar()
    yield from files.check_compiled()
    broken = list(project.settings_files(settings))
    yield from broken
    yield from files.kept_keys()
    yield from files.signing()
    yield from machine.keyring()
    if not broken:
        yield from _of_providers(Keys(settings), offline=offline)
    yield from project.started_servers(settings) if start_servers else project.servers(settings, offline=offline)
    yield from service.check_service(settings, offline=offline)
    yield from machine.check_sandbox(settings)
    yield from files.permissions(folder)
    yield from files.find_links(folder)
    yield from files.journals(folder)
    yield from machine.disk(folder)


def _of_providers(keys: Keys, *, offline: bool) -> Iterator[Finding]:
    try:
        yield from providers.check_preferences(keys, offline=offline)
        yield from providers.keys_found(keys)
        yield from providers.check_connected(keys, offline=offline)
    except KoiError as error:
        yield Finding("keys", "error", error.message)
        return
    if not offline:
        yield from providers.servers_here(keys)


def _line(finding: Finding, look: Theme) -> str:
    fix = f"\n{'':>21}{look.gives} {clean(finding.fix)}" if finding.fix else ""
    return f"{look.paint(*MARKS[finding.level])}  {finding.about:<11} {clean(finding.text)}{fix}"


def _summary(findings: list[Finding]) -> str:
    counts = Counter(finding.level for finding in findings)
    totals = [count_text(counts[kind], kind) for kind in ("error", "warning") if counts[kind]]
    return f"\n{', '.join(totals) or 'nothing is wrong'}"
