"""``python -m bowstring``: what files of Arrow data hold, and what is wrong with it."""

import sys

from ._inspect import main

if __name__ == "__main__":
    sys.exit(main())
