"""The manual as a site: `python -m docs.site` puts its pages together and has Zensical build them in `build/site`.

The pages stand in several folders of the repository, and link to files of it; on the site they stand in one, and
links to what is no page of it become plain words. Beside them stand `llms.txt`, a list of the pages for models, and
`llms-full.txt`, all of them in one text.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from koi_lang.system import resources

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
# A fence whose first line names a file, as tests of the manual know it.
NAMED = re.compile(r"^```(\w+) +(\S+)$", re.MULTILINE)
ROW = re.compile(r"^\| \[([^]]+)\]\(([^)]+)\) \| (.+) \|$", re.MULTILINE)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def sources(root: Path = ROOT) -> Mapping[str, Path]:
    """The files of the site by their place in it."""
    docs = {
        path.relative_to(root / "docs").as_posix(): path
        for path in sorted((root / "docs").rglob("*"))
        if path.suffix in (".md", ".svg", ".png")
    }
    docs["index.md"] = docs.pop("README.md")
    library = {f"library/{path.name}": path for path in sorted(resources.standard_skills().glob("*.md"))}
    more = {"overview.md": root / "README.md", "changelog.md": root / "CHANGELOG.md"}
    inside = {"contributing.md": root / "CONTRIBUTING.md", "design/grammar.md": root / "grammar" / "README.md"}
    return {**docs, **library, **more, **inside}


def place_pages(target: Path, root: Path = ROOT) -> None:
    """Write the pages of the site into a folder."""
    found = sources(root)
    places = {path.resolve(): place for place, path in found.items()}
    for place, path in found.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            (target / place).write_text(site_page(path, place, places), "utf-8")
        else:
            shutil.copyfile(path, target / place)


def site_page(path: Path, place: str, places: Mapping[Path, str]) -> str:
    """A page with links as they are on the site."""

    def link(found: re.Match[str]) -> str:
        mark, words, target, anchor = found[1], found[2], found[3], found[4] or ""
        there = places.get((path.parent / target).resolve())
        if there is None:
            return "" if mark else words
        return f"{mark}[{words}]({relpath(there, PurePosixPath(place).parent.as_posix())}{anchor})"

    parts, at = [], 0
    text = path.read_text("utf-8")
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(link, text[at : fence.start()]), NAMED.sub(r'```\1 title="\2"', fence[0])]
        at = fence.end()
    return "".join([*parts, LINK.sub(link, text[at:])])


def navigation(root: Path = ROOT) -> list[dict[str, object]]:
    """The pages below the headings of the contents, by their names there, then those that stand outside of `docs`."""
    _, *parts = SECTION.split((root / "docs" / "README.md").read_text("utf-8"))
    listed: dict[str, Sequence[object]] = {
        name: [{title.replace("`", ""): normpath(target)} for title, target, _ in ROW.findall(body)]
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
    library: Sequence[object] = sorted(place for place in sources(root) if place.startswith("library/"))
    outside: Sequence[object] = ["design/grammar.md", "contributing.md", "changelog.md"]
    groups: dict[str, object] = {**listed, "The library, part by part": library, "The project": outside}
    return [
        {"Contents": "index.md"},
        {"Overview": "overview.md"},
        *({name: pages} for name, pages in groups.items() if pages),
    ]


def _inline(value: object) -> str:
    """A list or a table as TOML writes it in one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_inline(each)}' for key, each in value.items())} }}"
    return f"[{', '.join(map(_inline, value))}]" if isinstance(value, list) else json.dumps(value)


def llms(root: Path = ROOT) -> str:
    """The list of pages for models, with what the contents say of each."""
    contents = (root / "docs" / "README.md").read_text("utf-8")
    rows = [f"- [{title}]({normpath(target)}): {about}" for title, target, about in ROW.findall(contents)]
    about = "Koi is a small language for programs made of AI agents, and the Python package that runs it."
    return "\n".join(["# Koi", "", f"> {about}", "", "## Pages", "", *rows, ""])


def llms_full(root: Path = ROOT) -> str:
    """All pages that the contents list, in their order, in one text."""
    contents = root / "docs" / "README.md"
    pages = [contents, *(root / "docs" / target for _, target, _ in ROW.findall(contents.read_text("utf-8")))]
    return "\n\n".join(path.read_text("utf-8").strip() for path in pages) + "\n"


def build(target: Path) -> int:
    """Build the site in the folder `site` of another; gives the exit code, not 0 where there is a warning."""
    pages, config = target / "pages", target / "zensical.toml"
    shutil.rmtree(pages, ignore_errors=True)
    place_pages(pages)
    settings = (ROOT / "zensical.toml").read_text("utf-8")
    config.write_text(settings.replace("nav = []", f"nav = {_inline(navigation())}"), "utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config)]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        (target / "site" / "llms.txt").write_text(llms(), "utf-8")
        (target / "site" / "llms-full.txt").write_text(llms_full(), "utf-8")
    return code


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
    folder.mkdir(parents=True, exist_ok=True)
    sys.exit(build(folder))
