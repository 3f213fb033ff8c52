"""``python -m matrix [--write FILE]``: prints the page, or writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from . import page, run


def main(words: list[str]) -> int:
    """Runs the command, and tells whether all is well."""
    if words == ["--with-jax"]:
        run.show_with_jax()
        return 0
    if words and (len(words) != 2 or words[0] != "--write"):
        print("python -m matrix [--write FILE]", file=sys.stderr)
        return 2
    found, broken = run.everything()
    text = page.text(found)
    if words:
        Path(words[1]).write_text(text)
    else:
        print(text)
    for one in broken:
        print(f"FAILED: {one.producer} -> {one.consumer}, {one.case}: {one.what}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
