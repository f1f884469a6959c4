"""Names that people bring along from Node, browsers and Python, each with what Koi has instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MODULE = 'write it in Python and import that: `import name from "./module.py"`.'
BROWSER = "there is no page: print with `console.log`, ask with the action `prompt_user`."
SHARED = "what agents share is kept in `registry`, what one agent keeps in `this.state`."

_NODE = {
    "require": 'imports stand at the top of the file: `import name from "python:module"`.',
    "module": "what others may use is marked: `export function`, `export prompt`.",
    "exports": "what others may use is marked: `export function`, `export prompt`.",
    "Buffer": MODULE,
    "global": SHARED,
    "globalThis": SHARED,
    "setImmediate": "write `setTimeout(f, 0)`.",
    "queueMicrotask": "write `setTimeout(f, 0)`.",
    "arguments": "declare the parameters: `(...items) => …`.",
    "tool": 'call an action with `callAction("name", { … })`.',
    "sleep": "write `await new Promise(done => setTimeout(done, 1000))`.",
    "fs": 'write `import "std/files"`, or import Python: `import os from "python:os"`.',
    "path": 'import it from Python: `import path from "python:os.path"`.',
    "axios": "write `await fetch(…)`.",
    "new": "write the name of a class behind it: `new Error(…)`.",
    "debugger": "leave it out; `koi runs show` shows what a run did.",
    "BigInt": "whole numbers are exact up to 2 ** 53; larger ones are for Python.",
    "Symbol": "use a text as the key.",
    "WeakMap": "keep it in a `new Map()`, and delete what is no longer needed.",
    "WeakSet": "keep it in a `new Set()`, and delete what is no longer needed.",
    "WeakRef": "keep the value itself.",
    "Proxy": "write a function that is called where the field was used.",
    "Reflect": "write `Object.keys(…)`, `object[key]` or `delete object[key]`.",
    "eval": "text is never run as code; choose between functions with `if`.",
}
# Modules of Python whose names are hardly meant as anything else.
_MODULES = "os sys re math random datetime logging subprocess pathlib uuid hashlib csv sqlite3"
_PYTHON = {
    "print": "write `console.log(…)`.",
    "None": "write `null`.",
    "True": "write `true`.",
    "False": "write `false`.",
    "TRUE": "write `true`.",
    "FALSE": "write `false`.",
    "self": "write `this`.",
    "len": "write `list.length`.",
    "str": "write `String(value)`.",
    "int": "write `parseInt(text)`.",
    "float": "write `parseFloat(text)`.",
    "range": "write `for (let i = 0; i < n; i++) { … }`.",
    "nil": "write `null`.",
    "asyncio": "write `await Promise.all([ … ])` for several at the same time.",
    **dict.fromkeys(("requests", "httpx"), "write `await fetch(…)`."),
    **dict.fromkeys(("openai", "anthropic"), 'write `playbook "…"`, or `await callAction("call_llm", { … })`.'),
    "input": 'write `await callAction("prompt_user", { question: "…" })`.',
    "isinstance": 'write `typeof value === "string"`, `Array.isArray(value)` or `value instanceof Map`.',
    **dict.fromkeys(("println", "printf", "puts", "System", "fmt"), "write `console.log(…)`."),
    **{name: f"write `Math.{name}(…)`." for name in "abs round pow floor ceil sqrt log max min".split()},
    "open": 'write `import "std/files"`, and `await readFile("…")`.',
    **dict.fromkeys(("map", "filter", "reduce"), "write it behind the list: `list.map(item => …)`."),
    "useState": "what an agent keeps stands in `state { … }`, and is read by `this.state`.",
    "List": "write `[ … ]`.",
    **dict.fromkeys(("Runner", "runner"), "call a handler: `await Agent.event({ … })`."),
    **dict.fromkeys(
        ("Crew", "Swarm", "Process"), "write `team Name { ada: Ada }` at the top, and send its members events."
    ),
    "Task": 'write a handler of an agent: `on work(args: { … }) { playbook "…" }`.',
    **dict.fromkeys(
        ("StateGraph", "Graph", "MessageGraph", "Command", "START", "END"),
        "a graph is a handler in code: `await Ada.draft({ … })`, with `if` and `while`.",
    ),
    **dict.fromkeys(("MemorySaver", "SqliteSaver"), "leave it out: every run has a journal, and `koi resume` goes on."),
    "Send": "write `await Promise.all(list.map(item => Ada.work({ item })))`.",
    **dict.fromkeys(
        (
            "HumanMessage",
            "SystemMessage",
            "AIMessage",
            "ChatPromptTemplate",
            "PromptTemplate",
            "LLMChain",
            "ChatOpenAI",
        ),
        'write `playbook "…"` in a handler, with `{{args.question}}` where a value is inserted.',
    ),
    **dict.fromkeys(
        ("create_react_agent", "AgentExecutor", "AssistantAgent", "UserProxyAgent"),
        'declare it at the top: `agent Name : Role { on work(args) { playbook "…" } }`.',
    ),
    "set": "write `new Set()`.",
    "dict": "write `{}`, or `new Map()`.",
    **dict.fromkeys(("list", "tuple"), "write `[]`, or `[...items]` for a copy."),
    "interrupt": 'write `await callAction("prompt_user", { question: "…" })`.',
    **dict.fromkeys(("emit", "dispatch", "publish"), 'write `await send peers.event("…").any()({ … })`.'),
    "pass": "leave it out: a block may be empty.",
    "not": "write `!`, as in `!list.includes(item)`.",
    "assert": "write `if (!…) throw new Error(…)`.",
    **{name: f'write `import {name} from "python:{name}"` at the top of the file.' for name in _MODULES.split()},
}
_BROWSER = "window document alert confirm localStorage sessionStorage navigator location XMLHttpRequest"
_ABSENT = "__dirname __filename Function ArrayBuffer crypto performance WebSocket"
FOREIGN: Mapping[str, str] = MappingProxyType(
    {**dict.fromkeys(_BROWSER.split(), BROWSER), **dict.fromkeys(_ABSENT.split(), MODULE), **_NODE, **_PYTHON}
)
