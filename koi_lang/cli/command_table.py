"""The built-in commands by what they are for, their former names, and the words of other tools for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from koi_lang.cli.ui.colours import with_colour_option

# Set in the context of a help that lists every command.
SHOWS_ALL = "koi_lang.shows_all"
# The section that `koi help all` adds.
FOR_TOOLS = "For tools"
# What the help says of each command; their modules are not imported for that.
SECTIONS = {
    "Begin": {
        "init": "Create a project that runs and passes its test at once.",
        "docs": "Show a page of the manual.",
        "doctor": "Find out what keeps programs from running.",
        "connect": "Store the key of a provider, or list the stored ones.",
        "models": "List the models of the connected providers.",
    },
    "Write": {
        "check": "Report problems; explain messages and playbooks.",
        "fmt": "Format programs.",
        "memory": "List, search, add and remove notes for agents.",
        "list": "List actions, the standard library, skills and extensions.",
    },
    "Look before you pay": {
        "prompt": "Print the request that a model would get, and send nothing.",
        "audit": "Show what models may do for each agent, and what it can cost.",
        "graph": "Draw the agents of a program, their roles, teams and servers.",
    },
    "Run": {
        "run": "Run a program.",
        "chat": "Talk to an agent of a program.",
        "do": "Give an agent a task in the project of this folder.",
        "think": "Weigh a task by votes before an agent does it.",
        "repl": "Type declarations and statements, and see their results.",
        "debug": "Debug a program, or step through a recorded run.",
    },
    "Afterwards": {
        "runs": "List, show, follow, export or delete recorded runs, or their costs.",
        "resume": "Continue an interrupted run, or go back to an entry.",
        "undo": "Restore the files that a run has changed.",
        "replay": "Run a program against a recording and compare.",
        "learn": "Offer what recorded runs suggest: plans, rules and notes.",
        "reflect": "Tell what recorded runs came to, by tool and by topic.",
        "dashboard": "Show running work, open questions and costs.",
    },
    "Hold to it": {
        "test": "Run the tests of programs.",
        "eval": "Run the evals of programs and measure the results.",
        "freeze": "Make a plan of recorded calls that answers in the place of a model.",
    },
    "Serve": {
        "serve": "Serve programs to browsers and other programs.",
        "ask": "Call a handler of a service.",
        "service": "Manage a service: tokens, jobs, webhooks, reload.",
    },
    FOR_TOOLS: {
        "lsp": "Serve an editor: problems while typing, completion, definitions.",
        "acp": "Serve an agent to editors that speak the Agent Client Protocol.",
        "rpc": "Let another program run and steer a program.",
        "compile": "Write the Python module of a program.",
        "from": "Print a workflow script in JavaScript as a program.",
        "types": "Write the declared types of a program for Python or TypeScript.",
        "update": "Show or run the command that installs the newest version.",
        "trust": "Show what the settings of this folder permit, and trust them.",
        "permissions": "Show or revoke the rules for later runs of this project.",
        "disconnect": "Remove the key of a provider.",
        "cache": "Show or clear the cache of compiled programs.",
        "registry": "Show or clear the registry of this folder.",
        "completion": "Print the completion script for bash, zsh or fish.",
        "help": "Show the help of a command; `koi help all` lists every command.",
        "version": "Show the version.",
    },
}
COMMANDS = {name: about for section in SECTIONS.values() for name, about in section.items()}

# What commands were called before. The names go on working for one release, with a line on stderr.
FORMER_COMMANDS: Mapping[Sequence[str], Sequence[str]] = {
    ("actions",): ("list", "actions"),
    ("std",): ("list", "std"),
    ("skills",): ("list", "skills"),
    ("extensions",): ("list", "extensions"),
    ("explain",): ("check", "--explain"),
    ("explain-playbook",): ("check", "--playbook"),
    ("export",): ("runs", "export"),
    ("serve", "token"): ("service", "token"),
    ("serve", "jobs"): ("service", "jobs"),
    ("serve", "hooks"): ("service", "hooks"),
    ("serve", "reload"): ("service", "reload"),
}

# What options of a command were called before, which go on working as long.
FORMER_OPTIONS: Mapping[Sequence[str], Mapping[str, str]] = {
    ("eval",): {"--budget-usd": "--max-usd", "--timeout": "--max-time"},
    ("resume",): {"--budget-usd": "--max-usd"},
    ("test",): {"--timeout": "--max-time"},
    ("service", "jobs"): {"--dry-run": "--within"},
    ("runs", "costs"): {"--since": "--from"},
    ("runs", "export"): {"--since": "--from"},
}

# What other tools call a thing, and the words for it here.
FOREIGN_WORDS = {
    **dict.fromkeys(("auth", "credentials", "key", "keys", "login", "token"), "connect"),
    "attach": "runs attach",
    "bench": "eval",
    "build": "compile",
    "compare": "replay",
    "continue": "resume",
    "cost": "runs costs",
    "create": "init",
    "deploy": "serve http",
    "dev": "run --watch",
    "exec": "run",
    "format": "fmt",
    "logout": "disconnect",
    "logs": "runs tail",
    "lint": "check",
    "ls": "runs list",
    "mcp": "serve mcp",
    "new": "init",
    "ps": "dashboard",
    "revert": "undo",
    "shell": "repl",
    "start": "run",
    "status": "doctor",
    "trace": "runs show",
    "typecheck": "check",
    "ui": "dashboard",
    "upgrade": "update",
    "validate": "check",
    "visualize": "graph",
    "web": "serve http",
}


class CommandModules(click.Group):
    """A group whose commands are modules, each imported when it is called.

    Args:
        find: imports the module of a command.
        table: the names of the commands with what the help says of each.
    """

    def __init__(self, *args: Any, find: Callable[[str], Any], table: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.find, self.table = find, table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        return with_colour_option(self.find(cmd_name).command) if cmd_name in self.table else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.table.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin with a text, or the options of the group; no command is imported for that."""
        names = [CompletionItem(name, help=about) for name, about in self.table.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]
