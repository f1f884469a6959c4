"""Write all generated files of editors."""

from __future__ import annotations

from editors.generate import files

if __name__ == "__main__":
    for path, text in files.contents().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
