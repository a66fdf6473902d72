"""Text files that are not UTF-8: what they are written in, and the same text as UTF-8."""

import codecs
import gzip
from pathlib import Path
from typing import IO, cast

from equipoise.errors import OptionError, TrailError

#: Bytes that are looked at first; a sign that is not UTF-8 may still come later.
BEGINNING = 1 << 20

# The longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ADVICE = "Pass encoding=…, such as 'cp1252', 'latin-1' or 'utf-16', or save it as UTF-8."


def known_encoding(name: object) -> str:
    """The name of an encoding as Python has it; anything else is refused.

    >>> known_encoding("Windows-1252")
    'cp1252'
    """
    try:
        # the lookup knows ways to pack bytes as well, which are no encodings of text
        "".encode(str(name))
        return codecs.lookup(str(name)).name
    except (LookupError, ValueError, TypeError) as error:
        raise OptionError(
            f"encoding={name!r} is not known. There is 'utf-8', 'utf-16', 'cp1252', 'latin-1' and "
            "whatever else Python can decode."
        ) from error


def encoding_of(file: str, *, throughout: bool = False) -> str:
    """What a text file is written in, by its first bytes, or by all of them.

    A mark at the beginning decides, else zeros beside every other byte (UTF-16), else whether it is
    UTF-8. What is neither is taken for cp1252, which Windows writes in Western Europe and America,
    or for Latin-1 where it has bytes that cp1252 does not.
    """
    with byte_stream(file) as stream:
        beginning = stream.read(BEGINNING)
        marked = next((name for mark, name in _MARKS if beginning.startswith(mark)), None)
        if marked is not None:
            return marked
        if b"\0" in beginning:
            return _wide(beginning, file)
        decoder, piece = codecs.getincrementaldecoder("utf-8")(), beginning
        try:
            while piece:
                decoder.decode(piece)
                piece = stream.read(BEGINNING) if throughout else b""
            # a sign cut in two at the end of a sample is not at the end of the file
            decoder.decode(b"", final=throughout or len(beginning) < BEGINNING)
        except UnicodeDecodeError:
            # bytes that cp1252 leaves open
            return "latin-1" if {*piece} & {*b"\x81\x8d\x8f\x90\x9d"} else "cp1252"
    return "utf-8"


def _wide(beginning: bytes, file: str) -> str:
    """UTF-16 without a mark has a zero beside most letters; other zeros are no text."""
    half = len(beginning) // 2
    even, odd = beginning[0::2].count(0), beginning[1::2].count(0)
    if half and max(even, odd) > 0.3 * half and min(even, odd) < 0.05 * half:
        return "utf-16-be" if even > odd else "utf-16-le"
    raise TrailError(
        f"{Path(file).name} could not be read: it holds bytes of zero, which no CSV file in UTF-8 "
        f"has; it may be of another kind than its name says. {_ADVICE}"
    )


def write_utf8(file: str, encoding: str, made: Path) -> None:
    """Write the text of a file again as UTF-8."""
    try:
        with (
            byte_stream(file) as stream,
            codecs.getreader(encoding)(stream) as text,
            made.open("w", encoding="utf-8", newline="") as out,
        ):
            while piece := text.read(BEGINNING):
                out.write(piece)
    except UnicodeError as error:
        raise TrailError(
            f"{Path(file).name} could not be read: it is not written in {encoding} ({error}). "
            f"{_ADVICE}"
        ) from error


def byte_stream(file: str) -> IO[bytes]:
    """The bytes of a file, unpacked if gzip packed them."""
    if file.lower().endswith(".gz"):
        return cast(IO[bytes], gzip.open(file, "rb"))
    return open(file, "rb")
