"""Files: read with a clear error, written all or nothing."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from equipoise.errors import EquipoiseError

#: Bytes of a plan or of evidence at most; evidence of 100,000 groups has a tenth.
LONGEST = 2**30


def read_text(path: str | Path, what: str) -> str:
    """The text of a file; ``what`` says in an error what it was expected to be."""
    try:
        # as in a text file anywhere: one sign ends a line
        return read_bytes(path, what).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise EquipoiseError(f"The {what} {str(path)!r} cannot be read: {why(error)}.") from error


def read_bytes(
    path: str | Path, what: str, *, most: int = LONGEST, within: Path | None = None
) -> bytes:
    """The content of a file of at most so many bytes; never of a device, a pipe or a folder.

    ``within`` is for what came with a file from elsewhere: the folder that it must lie in, links
    followed to their end.
    """
    with open_file(path, what, within=within) as stream:
        # by its size, so that what is too large is not read
        large = os.fstat(stream.fileno()).st_size > most
        data = b"" if large else stream.read(most + 1)
    if large or len(data) > most:
        raise EquipoiseError(
            f"The {what} {str(path)[:300]!r} is larger than any: over {most:,} bytes."
        )
    return data


@contextlib.contextmanager
def open_file(path: str | Path, what: str, *, within: Path | None = None) -> Iterator[IO[bytes]]:
    """A file opened to be read, if it is one: a device or a pipe may have no end."""
    note_input(path)
    called = f"The {what} {str(path)[:300]!r}"
    try:
        if within is not None and not Path(path).resolve().is_relative_to(within.resolve()):
            raise EquipoiseError(f"{called} is a link to somewhere else, which is not followed.")
        # opening a pipe would wait for somebody to write
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        stream = os.fdopen(os.open(path, flags), "rb")
    except FileNotFoundError as error:
        raise EquipoiseError(f"There is no file {str(path)!r} to read the {what} from.") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise EquipoiseError(f"{called} cannot be read: {why(error)}.") from error
    with stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise EquipoiseError(f"{called} is no file.")
        try:
            yield stream
        except OSError as error:
            raise EquipoiseError(f"{called} cannot be read: {why(error)}.") from error


def why(error: Exception) -> str:
    """What went wrong with a file, without the number that an operating system gives it.

    >>> why(FileNotFoundError(2, "No such file or directory"))
    'no such file or directory'
    """
    if isinstance(error, UnicodeDecodeError):
        return "it is no text in UTF-8"
    said = getattr(error, "strerror", None) or str(error)
    return f"{said[:1].lower()}{said[1:]}"


#: Files that the command reads, by device and number; None outside the command line.
INPUTS: ContextVar[set[tuple[int, int]] | None] = ContextVar("inputs", default=None)


def note_input(path: str | Path) -> None:
    """Remember a file that is read, which the same command must not replace."""
    seen = INPUTS.get()
    if seen is not None:
        with contextlib.suppress(OSError, ValueError):
            found = os.stat(path)
            seen.add((found.st_dev, found.st_ino))


#: How a file begins that may be replaced by another of its kind.
_BEGINNINGS = {
    "page": (b"<!doctype html>", b'name="generator" content="equipoise'),
    "signature": (b"{", b'"application/vnd.in-toto+json"'),
    "evidence": (b"{", b'"schema": "equipoise-'),
    "junit": (b"<?xml", b'<testsuites name="equipoise"'),
    "sarif": (b"{", b'"name": "equipoise"'),
}


def write_atomically(
    path: str | Path, text: str | bytes, *, force: bool = True, kind: str = "", mode: int = 0o644
) -> Path:
    """Write a file so that a reader finds the old one or the new one, never a part.

    The text goes to a file beside it, reaches the disk, and then takes the name. Without ``force``
    nothing is replaced but a file of the same ``kind``.
    """
    return write_together({Path(path): text}, force=force, kinds=[kind], mode=mode)[0]


def add_to(path: Path, text: str) -> Path:
    """Add a text to the end of a file, made if there is none; never to a link or a device."""
    refuse_target(path, "", force=False)
    try:
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise EquipoiseError(f"{str(path)!r} cannot be written: {why(error)}.") from error
    return path


def write_together(
    texts: Mapping[Path, str | bytes],
    *,
    force: bool = True,
    kinds: Sequence[str] = (),
    mode: int = 0o644,
) -> list[Path]:
    """Write files that belong together: all of them, or none.

    A process that is killed in between leaves the old files, the new ones, or some of them missing,
    but never an old one beside a new one: the old ones are set aside before the first new one
    takes its name, and put back if anything fails.
    """
    targets = [Path(path) for path in texts]
    refuse_twice(targets)
    for target, kind in zip(targets, kinds or [""] * len(targets), strict=True):
        refuse_target(target, kind, force)
    beside: list[Path] = []
    try:
        for target, text in zip(targets, texts.values(), strict=True):
            beside.append(_beside(target))
            _fill(beside[-1], text, _mode_of(target, mode))
        _take_names(beside, targets)
    except OSError as error:
        raise EquipoiseError(f"{str(targets[-1])!r} cannot be written: {why(error)}.") from error
    finally:
        # after a success the names are gone, after a failure nothing may stay behind
        for made in beside:
            with contextlib.suppress(OSError):
                made.unlink()
    WRITTEN.extend(targets)
    return targets


def refuse_twice(targets: Sequence[Path | None]) -> None:
    """Refuse to write two files to one place, before either is made."""
    known = [target for target in targets if target is not None]
    for place, target in enumerate(known):
        if any(_same_place(target, other) for other in known[:place]):
            raise EquipoiseError(f"Two files were to be written to {str(target)!r}. Name another.")


def _same_place(one: Path, other: Path) -> bool:
    if os.path.realpath(one.parent) == os.path.realpath(other.parent) and one.name == other.name:
        return True
    # two names of one file, or one name where capitals do not count
    with contextlib.suppress(OSError, ValueError):
        return os.path.samefile(one, other)
    return False


#: What this process has written, for whoever interrupts it and asks.
WRITTEN: list[Path] = []


def _beside(target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, since a file can only take a name on its own disk at one stroke;
    # and cut short, since file systems limit a name to 255 bytes.
    handle, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.")
    os.close(handle)
    return Path(made)


def _fill(made: Path, text: str | bytes, mode: int) -> None:
    with open(made, "wb") as out:
        out.write(text if isinstance(text, bytes) else text.encode("utf-8"))
        out.flush()
        os.fsync(out.fileno())
    # Temporary files are for their owner alone; a report is for whoever may read the folder.
    os.chmod(made, mode)


def _mode_of(target: Path, mode: int) -> int:
    with contextlib.suppress(OSError):
        found = target.lstat()
        if stat.S_ISREG(found.st_mode):
            return stat.S_IMODE(found.st_mode)
    return mode & ~_mask()


def _take_names(made: Sequence[Path], targets: Sequence[Path]) -> None:
    aside: list[tuple[Path, Path]] = []
    placed: list[Path] = []
    try:
        # All but the first go out of sight, so that none of them is ever seen beside a new first.
        for target in targets[1:]:
            if os.path.lexists(target):
                aside.append((_out_of_sight(target), target))
        if len(targets) > 1 and os.path.lexists(targets[0]):
            aside.append((_second_name(targets[0]), targets[0]))
        for new, target in zip(made, targets, strict=True):
            os.replace(new, target)
            placed.append(target)
    except BaseException:
        for target in placed:
            with contextlib.suppress(OSError):
                target.unlink()
        for spare, target in aside:
            os.replace(spare, target)
            # two names of one file stay two when one is to replace the other
            with contextlib.suppress(OSError):
                spare.unlink()
        raise
    for spare, _ in aside:
        with contextlib.suppress(OSError):
            spare.unlink()


def _out_of_sight(target: Path) -> Path:
    spare = _beside(target)
    try:
        os.replace(target, spare)
    except BaseException:
        spare.unlink()
        raise
    return spare


def _second_name(target: Path) -> Path:
    """Another name for a file, which keeps it when its own name is taken."""
    spare = _beside(target)
    spare.unlink()
    try:
        os.link(target, spare, follow_symlinks=False)
    except (OSError, NotImplementedError):  # a disk without links
        return _out_of_sight(target)
    return spare


def refuse_target(target: Path, kind: str, force: bool) -> None:
    """Refuse to replace what nobody can mean to, and without ``force`` anything of other kind."""
    try:
        found = target.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise EquipoiseError(f"{str(target)!r} cannot be written: {why(error)}.") from error
    if not (stat.S_ISREG(found.st_mode) or (force and stat.S_ISLNK(found.st_mode))):
        what = "a link" if stat.S_ISLNK(found.st_mode) else "a folder, a device or a pipe"
        raise EquipoiseError(f"{str(target)!r} cannot be written: it is {what}. Pass another name.")
    if (found.st_dev, found.st_ino) in (INPUTS.get() or ()):
        raise EquipoiseError(
            f"{str(target)!r} cannot be written: it is what this command reads. Pass another name."
        )
    if force or found.st_size == 0 or not kind:
        return
    if kind not in _BEGINNINGS:
        raise EquipoiseError(
            f"{str(target)!r} exists. Pass another name, or --force to replace it."
        )
    with open(target, "rb") as stream:
        beginning = stream.read(4096).lower().lstrip()
    first, inside = _BEGINNINGS[kind]
    if not (beginning.startswith(first) and inside in beginning):
        raise EquipoiseError(
            f"{str(target)!r} exists and is no {kind} of equipoise. Pass another name, or --force "
            "to replace it."
        )


def _mask() -> int:
    """The permissions this process withholds from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def locked(path: Path) -> Iterator[IO[bytes]]:
    """A file opened to be read and added to, while every other process that does so waits."""
    if os.path.lexists(path) and not path.is_file():
        raise EquipoiseError(f"{str(path)!r} cannot be written: it is no file.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise EquipoiseError(f"{str(path)!r} cannot be written: {why(error)}.") from error
    with file:
        _lock(file)
        try:
            yield file
        except OSError as error:
            raise EquipoiseError(f"{str(path)!r} cannot be written: {why(error)}.") from error


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
