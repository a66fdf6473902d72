"""Check that no file of the repository says where it was made.

    python tools/check_hygiene.py [FOLDER]

Looks for folders of one machine, addresses of package registries, index options in the
requirements, and lock files (which record the host of every download). The files are those
git would commit; where git cannot say, all files outside the usual build folders.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Written in pieces, so that this file does not find itself.
SLASH = "/"
HOSTS = ("pypi" + ".org", "python" + "hosted.org", "registry.npm" + "js.org", "jfrog" + ".io")
FOLDERS = ("home/[^/\\s]+", "root", "Users/[^/\\s]+", "work")

PATTERNS = {
    # Not preceded by a letter or a dot: a web address or a relative path may have such a part.
    "folder of one machine": re.compile(
        rf"(?<![\w.~{SLASH}-]){SLASH}(?:{'|'.join(FOLDERS)}){SLASH}"
    ),
    "home folder of one machine": re.compile(r"\b[A-Z]:\\+" + r"Users\\"),
    "package registry": re.compile("|".join(re.escape(host) for host in HOSTS)),
    "package index": re.compile(rf"://[^\s\"']*{SLASH}simple\b"),
}
INDEX_OPTION = re.compile(
    r"^\s*--(?:(?:extra-|default-)?index(?:-url)?|find-links)\b", re.MULTILINE
)
LOCK_FILE = re.compile(r"(?:uv\.lock|pylock(?:\..+)?\.toml)")
SKIPPED = {".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
SKIPPED |= {".hypothesis", "site", "out", "dist", "build"}


def files(root: Path) -> list[Path]:
    """List what git would commit from here, or everything if git cannot say."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return all_files(root)
    paths = (root / name for name in listing.split("\0") if name)
    # A file deleted but not yet committed is still listed.
    return sorted(path for path in paths if path.is_file())


def all_files(root: Path) -> list[Path]:
    """List every file outside the build folders."""
    found = (path for path in root.rglob("*") if path.is_file())
    return sorted(p for p in found if not SKIPPED & set(p.relative_to(root).parts))


def line_of(text: str, position: int) -> int:
    """Return the line number of a position in a text."""
    return text.count("\n", 0, position) + 1


def faults_of(path: Path, name: str) -> Iterator[str]:
    """Yield the faults of one file, each with its place."""
    if LOCK_FILE.fullmatch(path.name):
        yield f"{name}:1: lock file; requirements/ holds the pins"
    text = path.read_text(encoding="utf-8", errors="replace")
    patterns = PATTERNS | ({"index option": INDEX_OPTION} if "requirements" in path.parts else {})
    for what, pattern in patterns.items():
        for match in pattern.finditer(text):
            yield f"{name}:{line_of(text, match.start())}: {what}: {match.group().strip()}"


def check(root: Path) -> list[str]:
    """Return the faults of a folder, in order."""
    return [fault for path in files(root) for fault in faults_of(path, str(path.relative_to(root)))]


def main(arguments: list[str]) -> int:
    """Print the faults and return the exit code."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    faults = check(root)
    print("\n".join(faults) if faults else "hygiene: no machine, registry or lock file named")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
