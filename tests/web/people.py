"""People at the page of a service: a browser that notes what must not happen, and the program that they use."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.service.users import hash_of
from tests.limits import LIMIT_S
from tests.service.serving_process import TOKEN, ServiceProcess
from tests.wheel import CHECKOUT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page

AXE = CHECKOUT / "tests" / "data" / "axe" / "axe.min.js"
LIMIT_MS = LIMIT_S * 1000
# What must be mended before anybody is let in.
GRAVE = ("serious", "critical")
# What people show.
TOKENS = {name: f"koi_{name}-0123456789" for name in ("ada", "bob", "eve")}
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 780}
PROGRAM = """
import "std/code"
role Helper { can delegate, can execute, can write }
role Expert { can advise }
agent Researcher : Expert {
  affordance "Finds facts about a topic."
  on research(args: { topic: string }) {
    affordance "Look up facts"
    playbook "Return two facts about {{args.topic}} as a list of texts."
  }
}
team Desk { researcher: Researcher }
agent Writer : Helper {
  affordance "Writes short notes about whatever you like"
  examples "tea", "a question"
  uses team Desk
  on chat(args: { message: string }) { playbook "Help with {{args.message}}." }
}
agent Planner : Helper {
  affordance "Plans a tidy-up and asks before it begins"
  on chat(args: { message: string }) { playbook "Plan {{args.message}}." }
}
"""
NOTE = """## Tea, in short

**Tea** is *one* plant, `Camellia sinensis`. It reached Europe on Dutch ships.

| kind | treated | cups |
|:---|---|---:|
| green | steamed | 3 |
| black | oxidised | 12 |

1. Warm the pot.
2. Wait *four* minutes.

```python
def brew(minutes: int = 4) -> str:
    return f"ready after {minutes} minutes"
```

> A cup of life. [More](https://example.org/tea)

![a picture](https://example.org/x.png)
"""
# Code in three languages, one of which nobody knows, formulas, prices, and a table that is wider than a phone.
LESSON = r"""The area is $\pi r^2$, for \(r > 0\), and costs $5 or $6; `$HOME` stays, and so does $\nonsense{$.

$$\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2} + \sum_{n=1}^{\infty} \frac{1}{n^2}
+ \prod_{k=1}^{N} \left(1 + x_k\right)$$

\[ A = \begin{pmatrix} a & b \\ c & d \end{pmatrix} \]

```koi
agent Greeter : Speaker {
  on hello(args: { name: string }) { return "Hello, " + args.name }  // politely
}
```

```python
def area(radius: float) -> float:
    return 3.14 * radius**2  # of a circle, in a line that is too long for the screen of a phone
```

```nobody
plain & <b>simple</b>
```

```
without a language, in a line that is too long for the screen of a phone
```

$$\sum_{i=0}^{n} \left(a_i x^i + b_i y^i + c_i z^i + d_i w^i + e_i v^i + f_i u^i + g_i t^i\right)$$

| symbol | meaning | unit | typical value | source of the value | remark |
|---|---|---|---:|---|---|
| $r$ | radius | metre | 1.25 | measured on Monday | a long remark about it |
| $A$ | area | square metre | 4.91 | $\pi r^2$ | follows |
"""
FACTS = {"id": "f", "actionType": "delegate", "intent": "researcher::research", "data": {"topic": "tea"}}
FORM = {
    "required": ["email", "guests", "room"],
    "properties": {
        "email": {"type": "string", "format": "email"},
        "guests": {"type": "integer", "maximum": 6},
        "room": {"enum": ["single", "double", "suite"]},
        "arrival": {"type": "string", "format": "date"},
        "breakfast": {"type": "boolean"},
    },
}
ANSWERS: dict[str, list[Any]] = {
    "Help with tea": [
        FACTS,
        {"intent": "print", "message": NOTE},
        {"intent": "return", "data": {}},
    ],
    "Help with الشاي": [
        {"intent": "print", "message": "**الشاي** نبات:\n\n1. سخّن.\n\n> كوب.\n\n`code` أولا\n\nTea."},
        {"intent": "return", "data": {}},
    ],
    "Help with a lesson": [{"intent": "print", "message": LESSON}, {"intent": "return", "data": {}}],
    "Help with درس": [
        {"intent": "print", "message": f"المساحة $\\pi r^2$ بسيطة.\n\n{LESSON}"},
        {"intent": "return", "data": {}},
    ],
    "Help with a form": [
        {"id": "f", "intent": "prompt_form", "question": "**Your booking**", "form": FORM},
        {"intent": "return", "data": {"answer": "${f.output.answers.email} with ${f.output.answers.guests}"}},
    ],
    "Help with thanks": [{"intent": "return", "data": {"answer": "As you like."}}],
    "Help with one": [{"intent": "return", "data": {"answer": "first"}}] * 3,
    "Help with two": [{"intent": "return", "data": {"answer": "second"}}] * 3,
    "Help with a question": [
        {"id": "q", "intent": "prompt_user", "question": "Which **tone**?", "options": ["plain", "formal"]},
        {"intent": "return", "data": {"answer": "It is ${q.output.answer}."}},
    ],
    "Help with a name": [
        {"id": "q", "intent": "prompt_user", "question": "What is *your* `name`?"},
        {"intent": "return", "data": "Hello ${q.output.answer}."},
    ],
    "Help with notes": [
        {"intent": "write_file", "path": "notes.txt", "content": "one\ntea is fine\nthree\n"},
        {"intent": "edit_file", "path": "notes.txt", "before": "tea is fine", "after": "tea is <b>very</b> fine"},
        {"intent": "shell", "command": "wc -w notes.txt | sort --numeric-sort", "description": "count the words"},
        {"intent": "return", "data": "Both are decided."},
    ],
    "Plan": [
        {
            "intent": "propose_plan",
            "why": "The folder is full.",
            "steps": [
                {"text": "List the files", "touches": ["notes"]},
                {"text": "Move the old ones"},
                {"text": "Delete what is empty"},
            ],
        },
        {"intent": "return", "data": "It is tidy."},
    ],
    "Return two facts": [{"intent": "return", "data": ["one plant", "Dutch ships"]}],
}


def write_desk(folder: Path, answers: dict[str, list[Any]] = ANSWERS) -> ServiceProcess:
    """A service of the desk in a folder, not started yet."""
    (folder / "desk.koi").write_text(PROGRAM)
    (folder / "desk.answers.json").write_text(json.dumps(answers))
    write_users(folder)
    return ServiceProcess(folder, ("desk.koi", "--answers", "desk.answers.json"))


def write_users(folder: Path) -> None:
    """Have a service know the people of these tests."""
    users = [f'{name} = "{hash_of(token)}"' for name, token in TOKENS.items()]
    (folder / "koi.toml").write_text("\n".join(["[serve.users]", *users, ""]))


@dataclass(slots=True)
class Visitor:
    """Somebody at a page.

    Attributes:
        wrong: errors of the page, and what the browser has refused to do.
        asked: the addresses of all requests.
    """

    page: Page
    service: ServiceProcess
    screens: Path
    wrong: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Note what must not happen."""
        self.page.set_default_timeout(LIMIT_MS)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda line: self._note_line(line))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _note_line(self, line: ConsoleMessage) -> None:
        """Note an error that the browser tells of."""
        if line.type == "error":
            self.wrong.append(f"{line.text} {line.location['url']}")

    def enter(self, token: str = TOKEN) -> None:
        """Open the address that the service has shown."""
        self.page.goto(f"{self.service.url}/#token={token}")
        self.page.wait_for_selector("main h1, main #message")

    def begin(self, agent: str, message: str = "") -> None:
        """Choose an agent, and say something."""
        self.page.get_by_role("button", name=agent).click()
        self.page.wait_for_selector("#message")
        if message:
            self.say(message)

    def say(self, message: str) -> None:
        """Write a message and send it."""
        self.page.fill("#message", message)
        self.page.get_by_role("button", name="Send").click()

    def sees(self, text: str) -> None:
        """Wait until something stands in the conversation."""
        self.page.locator("main", has_text=text).first.wait_for()

    def press(self, name: str) -> None:
        """Press a button of a card, which takes a press once it has stood there for a moment."""
        button: Locator = self.page.locator(".request").get_by_role("button", name=name)
        button.and_(self.page.locator("[aria-disabled=false], :not([aria-disabled])")).click()

    @property
    def run(self) -> str:
        """The id of the run that is open."""
        self.page.wait_for_url("**/#/run/*")
        return self.page.url.rpartition("/")[2]

    def keep(self, name: str) -> None:
        """Keep a picture of the page, in the folder of `KOI_SCREENS` where there is one."""
        folder = Path(os.environ.get("KOI_SCREENS") or self.screens)
        self.page.screenshot(path=folder / f"{name}.png", animations="disabled")

    def keep_sizes(self, name: str) -> None:
        """Keep pictures of the page, wide and narrow, light and dark."""
        for width, scheme in ((1280, "light"), (360, "light"), (1280, "dark"), (360, "dark")):
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            self.keep(f"{name}-{width}-{scheme}")

    def grave_findings(self) -> list[str]:
        """What the checker of accessibility finds that keeps somebody out."""
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        return [
            f"{each['id']}: {node['html']}"
            for each in found["violations"]
            if each["impact"] in GRAVE
            for node in each["nodes"]
        ]

    def strangers(self) -> list[str]:
        """Requests that went anywhere but to the service."""
        return [url for url in self.asked if not url.startswith((f"{self.service.url}/", "data:"))]


@contextmanager
def visit(
    browser: Browser, service: ServiceProcess, screens: Path, within: BrowserContext | None = None, **look: Any
) -> Iterator[Visitor]:
    """A page for somebody, in a browser of their own unless one is given."""
    context = within or browser.new_context(**{"viewport": DESK, **look})
    visitor = Visitor(context.new_page(), service, screens)
    visitor.listen()
    try:
        yield visitor
    finally:
        visitor.page.close()
        if within is None:
            context.close()
