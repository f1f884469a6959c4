"""`python -m vendoring`: fetch the pinned packages with npm, bundle them, and note what came of it."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from vendoring.modules import AXE, ESBUILD, MODULES, VERSIONS, Module

CHECKOUT = Path(__file__).resolve().parent.parent
FOLDER = CHECKOUT / "koi_lang" / "web" / "static" / "vendor"
AXE_FOLDER = CHECKOUT / "tests" / "data" / "axe"
HEADER = "# Modules of others, made by `python -m vendoring`, which pins the versions: not for editing.\n"
BUNDLE = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=none", "--log-level=warning")


def main() -> None:
    """Bundle every module anew, with the licences of what is in it."""
    with TemporaryDirectory() as made:
        place = Path(made)
        fetch(place, {**VERSIONS, "esbuild": ESBUILD, "axe-core": AXE})
        empty(FOLDER)
        tables = [table_of(module, bundle(place, module), place) for module in MODULES]
        (FOLDER / "VENDOR.toml").write_text("\n".join([HEADER, *tables]), "utf-8")
        keep_axe(place)


def fetch(place: Path, versions: dict[str, str]) -> None:
    """Install packages of the configured registry, without running anything of theirs."""
    (place / "package.json").write_text('{"private": true}')
    wanted = [f"{name}@{version}" for name, version in versions.items()]
    words = ["--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error"]
    subprocess.run(["npm", "install", *words, *wanted], cwd=place, check=True)


def empty(folder: Path) -> None:
    """Make a folder that holds nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "licences").mkdir(parents=True)


def bundle(place: Path, module: Module) -> list[str]:
    """Write one file, and say which packages it is made of."""
    entry, report = place / f"entry-{module.file}", place / "report.json"
    entry.write_text(module.entry, "utf-8")
    command = [str(place / "node_modules" / ".bin" / "esbuild"), entry.name, *BUNDLE]
    subprocess.run([*command, f"--outfile={FOLDER / module.file}", f"--metafile={report.name}"], cwd=place, check=True)
    inputs = json.loads(report.read_text("utf-8"))["inputs"]
    return sorted({package_of(path) for path in inputs if path.startswith("node_modules/")})


def package_of(path: str) -> str:
    """The package that a file below `node_modules` belongs to."""
    parts = path.rpartition("node_modules/")[2].split("/")
    return "/".join(parts[: 2 if parts[0].startswith("@") else 1])


def table_of(module: Module, packages: list[str], place: Path) -> str:
    """The lines of `VENDOR.toml` about one file; the licences are kept beside it."""
    content = (FOLDER / module.file).read_bytes()
    lines = [f'["{module.file}"]', f"bytes = {len(content)}", f'sha256 = "{hashlib.sha256(content).hexdigest()}"']
    lines += ["packages = [", *(f"  {described(name, place)}," for name in packages), "]", ""]
    return "\n".join(lines)


def described(name: str, place: Path) -> str:
    """A package as an inline table: name, version, licence, and the file that holds the licence's text."""
    folder = place / "node_modules" / name
    about = json.loads((folder / "package.json").read_text("utf-8"))
    file = f"licences/{name.replace('/', '-').lstrip('@')}.txt"
    shutil.copyfile(next(path for path in sorted(folder.iterdir()) if is_licence(path)), FOLDER / file)
    return f'{{ name = "{name}", version = "{about["version"]}", licence = "{about["license"]}", text = "{file}" }}'


def is_licence(path: Path) -> bool:
    """Whether a file of a package is its licence."""
    return path.stem.lower() in ("license", "licence", "copying")


def keep_axe(place: Path) -> None:
    """The checker of accessibility that tests load into the pages, with its licence and its hash."""
    AXE_FOLDER.mkdir(parents=True, exist_ok=True)
    package = place / "node_modules" / "axe-core"
    for name in ("axe.min.js", "LICENSE", "LICENSE-3RD-PARTY.txt"):
        shutil.copyfile(package / name, AXE_FOLDER / name)
    sha256 = hashlib.sha256((AXE_FOLDER / "axe.min.js").read_bytes()).hexdigest()
    table = f'["axe.min.js"]\nsha256 = "{sha256}"\nversion = "{AXE}"\nlicence = "MPL-2.0"\n'
    (AXE_FOLDER / "VENDOR.toml").write_text(f"{HEADER}\n{table}", "utf-8")


main()
