"""``python -m equipoise``, and the command `equipoise`: guarded from the first import on."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run a command and leave with its exit code, Ctrl-C while it is being loaded included."""
    try:
        # imported here: most of the time until a command begins goes by in this line
        from equipoise.cli.main import main as begin

        begin()
    except KeyboardInterrupt:
        sys.stderr.write("error: Interrupted: nothing was written.\n")
        sys.stderr.flush()
        os._exit(130)


if __name__ == "__main__":
    main()
