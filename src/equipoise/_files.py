"""Files: read with a clear error, written all or nothing."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from equipoise.errors import EquipoiseError


def read_text(path: str | Path, what: str) -> str:
    """The text of a file; ``what`` says in an error what it was expected to be."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise EquipoiseError(f"There is no file {str(path)!r} to read the {what} from.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise EquipoiseError(f"The {what} {str(path)!r} cannot be read: {error}.") from error


def write_atomically(path: str | Path, text: str) -> Path:
    """Write a file so that a reader finds the old one or the new one, never a part.

    The text goes to a file beside it, reaches the disk, and then takes the name.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder, since a file can only take a name on its own disk at one stroke;
        # and cut short, since file systems limit a name to 255 bytes.
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.")
    except OSError as error:
        raise EquipoiseError(f"{str(target)!r} cannot be written: {error}.") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        # Temporary files are for their owner alone; a report is for whoever may read the folder.
        os.chmod(beside, 0o644 & ~_mask())
        os.replace(beside, target)
    except OSError as error:
        raise EquipoiseError(f"{str(target)!r} cannot be written: {error}.") from error
    finally:
        # after a success the name is gone, after a failure nothing may stay behind
        with contextlib.suppress(OSError):
            os.unlink(beside)
    return target


def _mask() -> int:
    """The permissions this process withholds from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def locked(path: Path) -> Iterator[IO[bytes]]:
    """A file opened to be read and added to, while every other process that does so waits."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise EquipoiseError(f"{str(path)!r} cannot be written: {error}.") from error
    with file:
        _lock(file)
        try:
            yield file
        except OSError as error:
            raise EquipoiseError(f"{str(path)!r} cannot be written: {error}.") from error


def _lock(file: IO[bytes]) -> None:
    # closing the file, or the end of the process, gives the lock back
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt  # type: ignore[import-not-found,unused-ignore]

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
