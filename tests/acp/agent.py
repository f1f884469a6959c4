"""An agent of another make: it asks leave for what its message says, and ends its turn with what it was answered.

`edit PATH` asks leave to change a file, `read PATH` to read it, `run COMMAND`, `fetch URL` for a page, `free` and
`strange` for something that is not described, or not as the protocol says. `odd` sends what is no message before it
answers, `cost` says what it has cost, `wait` never ends its turn, and notes what it is told.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def send(**message: Any) -> None:
    """Send a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> Any:
    """The next message; the end of the input ends the process."""
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return json.loads(line)


def update(**fields: Any) -> None:
    """Send an update."""
    send(method="session/update", params={"sessionId": "s", "update": fields})


def ask(**call: Any) -> str:
    """The option that is selected for a tool call."""
    options = [
        {"optionId": f"o{kind}", "kind": kind, "name": kind} for kind in ("allow_always", "allow_once", "reject_once")
    ]
    params = {"sessionId": "s", "toolCall": {"toolCallId": "t", **call}, "options": options}
    send(id=7, method="session/request_permission", params=params)
    return str(receive()["result"]["outcome"].get("optionId"))


def carry_out(text: str) -> str:
    """What comes of a message."""
    word, _, rest = text.partition(" ")
    match word:
        case "edit":
            diff = {"type": "diff", "path": rest, "oldText": "a\n", "newText": "b\n"}
            answer = ask(title="Edit it", kind="edit", locations=[{"path": rest}], content=[diff])
            if answer == "oallow_once":
                Path(rest).write_text("b\n")
            return answer
        case "fetch":
            return ask(title="Look it up", kind="fetch", rawInput={"url": rest})
        case "read":
            return ask(title="Read it", kind="read", locations=[{"path": rest}])
        case "run":
            return ask(title="Run it", kind="execute", rawInput={"command": rest})
        case "strange":
            return ask(title=7, kind=["edit"], locations=7, content="x", rawInput=[1])
        case "free":
            return ask(title="Do as I like")
        case "odd":
            print("no JSON", flush=True)
            send(id=8, method="fs/read_text_file", params={"sessionId": "s", "path": "/etc/passwd"})
            return str(receive()["error"]["code"])
        case "cost":
            update(sessionUpdate="usage_update", used=1, size=2, cost={"amount": 0.25, "currency": "USD"})
        case "wait":
            Path("waiting").touch()
            Path("told").write_text(str(receive().get("method")))
    return "done"


def main() -> None:
    """Serve one client."""
    while True:
        request = receive()
        match request["method"]:
            case "initialize":
                send(id=request["id"], result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
            case "session/new":
                send(id=request["id"], result={"sessionId": "s"})
            case "session/prompt":
                text = carry_out(request["params"]["prompt"][0]["text"])
                update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
                send(id=request["id"], result={"stopReason": "end_turn"})


if __name__ == "__main__":
    main()
