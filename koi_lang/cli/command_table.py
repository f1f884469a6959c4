"""The built-in commands by what they are for, and the words of other tools that lead to them."""

from __future__ import annotations

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
        "check": "Report the problems of programs without running them.",
        "fmt": "Format programs.",
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
        "repl": "Type declarations and statements, and see their results.",
        "debug": "Debug a program, or step through a recorded run.",
    },
    "Afterwards": {
        "runs": "List, show, follow, export or delete recorded runs.",
        "resume": "Continue an interrupted run, or go back to an entry.",
        "undo": "Restore the files that a run has changed.",
        "replay": "Run a program against a recording and compare.",
        "dashboard": "Show running work, open questions and costs.",
    },
    "Hold to it": {
        "test": "Run the tests of programs.",
        "eval": "Run the evals of programs and measure the results.",
    },
    "Serve": {
        "serve": "Serve programs to browsers and other programs.",
        "ask": "Call a handler of a service.",
    },
    FOR_TOOLS: {
        "lsp": "Serve an editor: problems while typing, completion, definitions.",
        "acp": "Serve an agent to editors that speak the Agent Client Protocol.",
        "rpc": "Let another program run and steer a program.",
        "compile": "Write the Python module of a program.",
        "actions": "List the actions a playbook can use.",
        "std": "List the standard library, or show the page of one part.",
        "skills": "List the skills in files that agents are offered, and why others are not.",
        "extensions": "List the installed extensions and what each adds.",
        "explain": "Explain the code of a message, such as E0203.",
        "explain-playbook": "Show what is understood of a playbook, sentence by sentence.",
        "export": "Write the recorded runs, or their costs, as JSON or CSV.",
        "trust": "Show what the settings of this folder permit, and trust them.",
        "permissions": "Show or revoke the rules for later runs of this project.",
        "disconnect": "Remove the key of a provider.",
        "corpus": "Record the streams of providers, and test the readers with them.",
        "cache": "Show or clear the cache of compiled programs.",
        "registry": "Show or clear the registry of this folder.",
        "completion": "Print the completion script for bash, zsh or fish.",
        "help": "Show the help of a command; `koi help all` lists every command.",
        "version": "Show the version.",
    },
}
COMMANDS = {name: about for section in SECTIONS.values() for name, about in section.items()}

# What other tools call a thing, and the words for it here.
FOREIGN_WORDS = {
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
    "login": "connect",
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
    "validate": "check",
    "visualize": "graph",
    "web": "serve http",
}
