"""The command ``tensorwright``; also ``python -m tensorwright``."""

import sys

from ._native import command


def main() -> int:
    return command(["tensorwright", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
