"""``python -m matrix [--write FILE]``: prints the page, or writes it, and the one with torch beside it."""

from __future__ import annotations

import sys
from pathlib import Path

from . import libraries, page, run


def main(words: list[str]) -> int:
    """Runs the command, and tells whether all is well."""
    if words == ["--with-jax"]:
        run.show_with_jax()
        return 0
    if words and (len(words) != 2 or words[0] != "--write"):
        print("python -m matrix [--write FILE]", file=sys.stderr)
        return 2
    found, broken = run.everything()
    pages = [("", page.text(found))]
    if libraries.has_torch():
        with_torch, wrong = run.with_torch()
        pages.append(("-torch", page.text_with_torch(with_torch)))
        broken += wrong
    elif words:
        print("torch is not installed: its page stays as it is", file=sys.stderr)
    for name, text in pages:
        if words:
            path = Path(words[1])
            path.with_name(f"{path.stem}{name}{path.suffix}").write_text(text)
        else:
            print(text)
    for one in broken:
        print(f"FAILED: {one.producer} -> {one.consumer}, {one.case}: {one.what}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
