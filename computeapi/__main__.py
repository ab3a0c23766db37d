"""`python -m computeapi` is the `computeapi` command."""

import sys

from computeapi.cli import main

if __name__ == '__main__':
    sys.exit(main())
