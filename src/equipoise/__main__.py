"""``python -m equipoise``: the command line where the script is not on the path."""

from equipoise.cli import main

if __name__ == "__main__":
    main()
