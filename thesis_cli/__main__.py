"""`python -m thesis_cli`."""

import sys

from thesis_cli.cli.app import main as _main


def main() -> None:
    sys.exit(_main())


if __name__ == "__main__":
    main()
