"""The built-in commands."""

# What the help says of each; their modules are not imported for that.
COMMANDS = {
    "run": "Run a program.",
    "serve": "Serve the exposed agents of a program to other programs.",
    "chat": "Talk to an agent of a program.",
    "rpc": "Let another program run and steer a program.",
    "test": "Run the tests of programs.",
    "eval": "Carry out the evals of programs, and measure what comes of them.",
    "check": "Report the problems of a program without running it.",
    "compile": "Write the Python module of a program.",
    "audit": "Show what a model may do on behalf of each agent.",
    "actions": "List the actions a playbook can use.",
    "std": "List the standard library, or show the page of one part.",
    "extensions": "List the installed extensions and what each adds.",
    "explain": "Explain the code of a message, such as E0203.",
    "runs": "List, show, follow, export, repair or delete recorded runs.",
    "resume": "Go on with an interrupted run, or from an entry of a recorded one.",
    "replay": "Run a program against a recorded run and show what is different.",
    "connect": "Keep the key of a provider, or show which are kept.",
    "disconnect": "Remove the key of a provider.",
    "models": "List the models of the connected providers.",
    "doctor": "Look for what keeps programs from running.",
    "corpus": "Keep what providers sent, and hold the readers against it.",
    "cache": "Show or clear the cache of compiled programs.",
    "registry": "Show or clear the registry of this folder.",
    "version": "Show the version.",
}
