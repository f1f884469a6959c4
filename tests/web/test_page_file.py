"""A run as one file: it is shown without a service or a network, and nothing that stands in it is carried out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from koi_lang.web.page_file import bundle_modules, run_page
from tests.journal.commands import Commands
from tests.web.conftest import open_browser
from tests.web.injections import PAYLOADS


def held_in(page: str) -> dict[str, object]:
    """The data that a page holds."""
    (text,) = re.findall(r'<script type="application/json" id="held">(.*?)</script>', page, re.DOTALL)
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def test_a_page_is_written_once(koi: Commands, desk: Path) -> None:
    """Without a name it is called like the run, and no file is written over."""
    first, again = koi("runs", "export", "--html", desk.stem), koi("runs", "export", "--html", desk.stem)
    without = koi("runs", "export", desk.stem)

    assert (0, f"wrote {desk.stem}.html\n") == (first.code, first.out)
    assert (2, True) == (again.code, "exists" in again.err)
    assert (2, True) == (without.code, "needs a file to write" in without.err)


def test_a_page_holds_the_run_and_no_place_of_this_machine(koi: Commands, desk: Path) -> None:
    """All entries are in it, with the source; the folder that the program stands in is not."""
    page = run_page(desk, str)
    held = held_in(page)

    assert [entry.as_data() for entry in koi.entries(desk)] == held["entries"]
    assert str(koi.folder) not in page
    assert {"header", "run", "entries", "source", "graph", "tree"} == held.keys()


SECRET = """
role Worker { can registry }
agent Main : Worker {
  on start(args: Json) { await callAction("registry_set", { key: "token", value: "Rt5Yu6Io7Pa8Sd9F" }) }
}
run Main.start({})
"""


def test_a_page_hides_in_the_source_what_the_journal_hides(koi: Commands) -> None:
    """Neither the entry of an action has the value of a telling name, nor the line that is shown beside it."""
    assert 0 == koi.record(SECRET).code
    assert 0 == koi("runs", "export", "--html", koi.journal.stem).code
    page = (koi.folder / f"{koi.journal.stem}.html").read_text("utf-8")

    assert (False, True) == ("Rt5Yu6Io7Pa8Sd9F" in page, 'key: \\"token\\", value: \\"[redacted]\\"' in page)


def test_a_page_carries_out_its_own_script_only(desk: Path) -> None:
    """The policy names the script and the styles by their hashes, and permits nothing else."""
    page = run_page(desk, str)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    texts = re.findall(r"<script>(.*?)</script>|<style>(.*?)</style>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256("".join(text).encode()).digest()).decode() for text in texts]

    assert 2 == len(digests)
    assert all(f"'sha256-{digest}'" in policy for digest in digests)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_page_of_a_program_that_is_gone(koi: Commands, desk: Path) -> None:
    """It shows the run without its source."""
    (koi.folder / "main.koi").unlink()

    assert held_in(run_page(desk, str))["source"] is None


def test_modules_in_unknown_forms_are_refused(tmp_path: Path) -> None:
    """What the bundle does not know would be left out of it unnoticed."""
    path = tmp_path / "a.js"
    for text in ('export * from "./b.js";\n', 'import * as b from "./b.js";\n', "export default 1;\n"):
        path.write_text(text)
        with pytest.raises(AssertionError, match="not known"):
            bundle_modules(path)


def test_modules_keep_their_names_to_themselves(tmp_path: Path) -> None:
    """Two modules may call different things alike, and what they import may be renamed."""
    (tmp_path / "a.js").write_text(
        'import { x as y } from "./b.js";\nimport z from "./c.js";\nconst x = 1;\nconsole.log(x, y(), z);\n'
    )
    (tmp_path / "b.js").write_text("export function x() { return 2; }\n")
    (tmp_path / "c.js").write_text("const q=3;export{q as default};\n")
    bundle = bundle_modules(tmp_path / "a.js")

    assert 1 == bundle.count("function x()")
    assert "const { x: y } = module0;" in bundle
    assert "const z = module1.default;" in bundle


@pytest.mark.needs("chromium")
def test_a_page_is_shown_offline(koi: Commands, desk: Path) -> None:
    """Opened from the disk without a network it shows the run, its source and its step, and asks for nothing."""
    page_file = koi.folder / "run.html"
    page_file.write_text(run_page(desk, str), "utf-8")
    with open_browser() as browser:
        context = browser.new_context(offline=True)
        page = context.new_page()
        told: list[str] = []
        page.on("request", lambda request: told.append(request.url))
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.goto(page_file.as_uri())
        page.click(".step:has-text('counter::count')")
        line = page.text_content(".line.here code")
        for tab in ("Tree", "Costs", "Program", "Entries", "Timeline"):
            page.get_by_role("tab", name=tab).click()
        title = page.text_content("h1")

    assert [page_file.as_uri()] == told
    assert 'playbook "Have the words' in str(line)
    assert "tea is one plant" in str(title)


@pytest.mark.needs("chromium")
def test_what_stands_in_a_page_is_not_carried_out(koi: Commands) -> None:
    """Whatever models, people and programs wrote is text, in every view."""
    answers = [
        {"batch": [{"intent": "print", "message": text} for text in PAYLOADS]},
        {"intent": "return", "data": PAYLOADS},
    ]
    koi.record(
        'role R { can execute } agent A : R { on go(args: Json) { playbook "Print {{args.all}}." } }\n'
        f"run A.go({json.dumps({'all': PAYLOADS}, ensure_ascii=True)})",
        answers,
    )
    assert len([entry for entry in koi.entries() if entry.kind == "printed"]) == len(PAYLOADS)
    page_file = koi.folder / "run.html"
    page_file.write_text(run_page(koi.journal, str), "utf-8")
    with open_browser() as browser:
        page = browser.new_page()
        told: list[str] = []
        page.on("request", lambda request: told.append(request.url))
        page.on("dialog", lambda dialog: told.append(dialog.message))
        page.goto(page_file.as_uri())
        for tab in ("Tree", "Costs", "Program", "Entries", "Timeline"):
            page.get_by_role("tab", name=tab).click()
        for kind in ("asks scripted", "return", "A.go"):
            page.fill("input[aria-label='find in steps']", kind)
            page.click(f".step:has(b:text-is('{kind}')) >> nth=0")
            for tab in page.locator(".inspector [role=tab]").all():
                tab.click()
        hit = page.evaluate(
            "[window.hit, {}.hit, document.querySelectorAll('iframe, object, img, base, link[href^=http]').length]"
        )

    assert [None, None, 0] == hit
    assert [page_file.as_uri()] == told
