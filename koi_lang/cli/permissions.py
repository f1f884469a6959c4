"""`koi permissions`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from koi_lang.cli.ui.text import one_line
from koi_lang.diagnostics import nearest
from koi_lang.errors import KoiError, UsageError, reason
from koi_lang.settings.lasting_rules import LastingRules


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show or take back what was allowed for later runs of this project."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_rules)


@command.command("list")
@click.option("--all", "is_all", is_flag=True, help="Of all projects.")
def list_rules(is_all: bool = False) -> None:
    """List the rules that are kept for runs in this folder, and those of users of a service in it.

    A rule is kept by whoever has answered `always` in two runs, and said yes when asked whether it is to last.
    """
    here = Path.cwd().resolve()
    kept = [rules for rules in LastingRules.find_all() if is_all or rules.project == here]
    for rules in kept:
        project = f"  in {rules.project}" if is_all else ""
        user = f"  for `{rules.user}`" if rules.user else ""
        for rule in rules.rules():
            click.echo(f"{_rule_text(rule)}{user}{project}")
    if not kept:
        click.echo("no rules are kept" if is_all else "no rules are kept for this folder", err=True)


@command.command()
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@click.option("--user", default="", metavar="NAME", help="The user of a service whose rules they are.")
def remove(rules: tuple[str, ...], user: str) -> None:
    """Remove rules, as `koi permissions list` shows them. Runs that are under way keep theirs."""
    kept = LastingRules.of(Path.cwd(), user)
    texts = {rule: _rule_text(rule) for rule in kept.rules()}
    missing = [rule for rule in rules if rule not in texts and rule not in texts.values()]
    if missing:
        whose = f" for `{user}`" if user else ""
        near = nearest(missing[0], list(texts.values()))
        help = f'Did you mean "{near}"?' if near else "`koi permissions list` shows the rules."
        raise UsageError(f"no rule `{missing[0]}` is kept here{whose}", help=help)
    for rule, text in texts.items():
        if rule in rules or text in rules:
            try:
                kept.remove(rule)
            except OSError as error:
                raise KoiError(f"the rules cannot be written: {reason(error)}", help="Mend that.") from error
            click.echo(f"removed {text}")


def _rule_text(rule: str) -> str:
    """A rule as a person reads and writes it; one for a command in a folder is kept as JSON."""
    kind, _, value = rule.partition("=")
    try:
        place, command = json.loads(value) if kind == "shell" else ("", "")
    except (ValueError, TypeError):  # somebody has written it by hand
        command = ""
    return one_line(f"run {command}{f' in {place}' if place else ''}" if command else rule)
