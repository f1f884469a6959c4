"""Explanations of the failures of a run, a page for each kind; `koi_lang.errors.EXIT_CODES` has their exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from types import MappingProxyType

_TEXTS = {
    "E0500": """
        The program threw an error that nothing caught.

        The message is the text of the error, and the first mark shows the line that threw it; below it stand the
        handlers and functions that led there. `try { … } catch (e) { … }` handles an error, and `koi debug` stops where
        it is thrown. An `expect` of a test that does not hold has this code, too.

        Exit code: 1.
    """,
    "E0501": """
        A limit of turns, requests, tokens, money or time was reached.

        The message names the limit and whose it is: that of one call, of the whole run, or of a user of a service. A
        call may have limits in its agent or behind its playbook, the run has those of `koi.toml` and of options such as
        `--max-usd`. The run is recorded: `koi resume ID --max-usd 2` continues it with a higher limit and repeats
        nothing. `koi audit --cost FILE` shows beforehand what a call can cost.

        Exit code: 4.
    """,
    "E0502": """
        An agent was refused something that it is not permitted to do.

        The role of the agent lacks the permission, a rule in `koi.toml` denies it, the person said no, or nobody could
        be asked. For a role, write the permission that the message names: `role Worker { can execute }`. For a command,
        a file or a page, allow it beforehand: `--allow "run:pytest *"`, or `[permissions] allow` in `koi.toml`.
        `koi audit FILE` shows what each agent may do.

        Exit code: 77.
    """,
    "E0503": """
        A provider of models failed, refused a request, or could not be reached.

        Requests that may succeed later were repeated before this was reported. `koi doctor` asks the provider whether
        the key counts. Once that is put right, `koi resume` continues the run where it stopped; `-m MODEL` continues it
        with another model. A `fallback` in the `llm` block names a model to use instead.

        Exit code: 69.
    """,
    "E0504": """
        A question could not be answered, because nobody was there to ask.

        Agents ask with `prompt_user` and `input`. Without a terminal there is no person: run the program at one, pipe
        the answers in, a line for each question, or serve it with `koi serve http`, where questions wait on the page.
        `koi resume` continues the run and asks again.

        Exit code: 75.
    """,
    "E0505": """
        A playbook could not be completed.

        The model repeated itself, sent answers that are no actions, or ended without what the playbook has to return.
        `koi runs show` lists what it answered, `koi prompt FILE AGENT.HANDLER` shows what it was asked, and
        `koi check --playbook FILE` what is understood of the text without a model. A clearer step, or a larger model,
        usually helps.

        Exit code: 70.
    """,
    "E0506": """
        A result does not fit the type that its handler declares.

        A model is told what is wrong and may answer again a few times; the result of code is checked once. The message
        names the field and what was expected there. Correct the `return`, or the declared type:
        `on count(args: Json): { words: number }`.

        Exit code: 76.
    """,
    "E0507": """
        An MCP server could not be started or reached, lacks what was asked for, or a call of one of its tools failed.

        The message has the last words of the server. `koi doctor --start-servers` starts each server of the programs
        here and lists its tools. Check the `command` or the `url` of the server, its variables, and for a slow one the
        option `timeout_s`. `koi connect URL` signs in to a server that asks for it.

        Exit code: 68.
    """,
    "E0508": """
        A file does not exist or cannot be read.

        Paths are relative to the folder in which the program is run. A program can look first, or catch the error:
        `try { … } catch (e) { … }`.

        Exit code: 66.
    """,
    "E0509": """
        No model can be used: none is configured, its key is missing, or the provider does not know its name.

        `koi connect` stores a key or the address of your own server, `koi models` lists what there is, and
        `-m provider/model` chooses one. `--rehearse` follows the explicit steps of playbooks without a model, and
        `--answers FILE` takes the answers from a file.

        Exit code: 2.
    """,
    "E0510": """
        A `send` did not get its answer in time.

        The time stands behind the word `timeout`: `await send peers.event("work").any()({}) timeout 30s`. What the
        handler was doing has been cancelled. Allow more time, or catch the error and continue without the answer.

        Exit code: 124.
    """,
    "E0511": """
        A guard of an agent refused what came in or what would have gone out.

        It returned `false` or `{ allow: false, reason: "…" }`, threw an error, or gave no verdict. The message has the
        reason. Whoever calls the handler can catch the error: `try { … } catch (e) { … }`. The page on guardrails tells
        how guards are written.

        Exit code: 77.
    """,
}
EXPLANATIONS: Mapping[str, str] = MappingProxyType({code: cleandoc(text) for code, text in _TEXTS.items()})
