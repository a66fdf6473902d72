"""The entry point: commands in, exit codes out, no tracebacks."""

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from equipoise._files import INPUTS, WRITTEN, why
from equipoise._validate import short
from equipoise._version import __version__
from equipoise.cli import auditing
from equipoise.cli import evidence_commands as keeping
from equipoise.cli import evidence_commands as planning
from equipoise.cli import planning as sizes
from equipoise.cli.common import DONE, ERROR, Leave, complain, in_words_of, outlet
from equipoise.errors import EquipoiseError
from equipoise.trail.engine import parted, remember_url, scrub

#: The option that shows tracebacks.
DEBUG = "--debug"

app = typer.Typer(
    name="equipoise",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Audit black-box models for unfairness, with statistical guarantees.\n\n"
    "Exit codes: 0 done, 3 error. `check`, `monitor check` and `repair` leave with 0 if the limits "
    "are shown to be kept, 1 if a violation is shown, 2 if neither is; `verify` leaves with 1 if "
    "anything differs. `audit` and `run` leave with 0 whatever they find.",
)
planning.app.command("power")(sizes.plan_power)
app.add_typer(planning.app, name="plan")
app.add_typer(sizes.app, name="monitor")
for command in (
    auditing.demo,
    auditing.example,
    auditing.audit,
    auditing.pack,
    auditing.repair,
    sizes.power,
    auditing.run,
    auditing.check,
    keeping.verify,
    keeping.sign,
    keeping.keygen,
    keeping.report,
    keeping.export,
    keeping.explain,
):
    app.command()(command)
app.command("schema")(keeping.evidence_schema)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"equipoise {__version__}")
        raise typer.Exit


@app.callback()
def equipoise(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Show where an error comes from, as a traceback.")
    ] = False,
) -> None:
    """Audit black-box models for unfairness, with statistical guarantees."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave with its exit code."""
    sys.stdout, sys.stderr = outlet(sys.stdout), outlet(sys.stderr)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        code = execute(sys.argv[1:] if arguments is None else list(arguments))
    except Interrupted:
        # between the steps of a command, where nothing is being done
        code = _interrupted()
    # whoever presses it now is late: there is nothing left to stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # such as a full disk
            code = code or ERROR
    # At a normal exit DuckDB's bindings complain about objects of their own on standard error.
    os._exit(code)


class Interrupted(BaseException):
    """Somebody pressed Ctrl-C; by another name than Python's, of which Typer makes an error."""


def _interrupt(*_: object) -> NoReturn:
    raise Interrupted


def execute(arguments: list[str]) -> int:
    """Run a command; the exit code says how it went."""
    for word in arguments:
        if ":" in word and "@" in word:
            # typed for everybody to see; at least no message and no list of processes shows it
            _hide_argument(word)
    # taken from anywhere, since it is added to the end of a command that failed
    debug, arguments = DEBUG in arguments, [word for word in arguments if word != DEBUG]
    watched = INPUTS.set(set())
    try:
        return _execute(arguments, debug)
    except Exception as error:
        # Python itself would leave with 1, which here means that a violation is shown
        said = short(" ".join(str(error).split()), 300) or "no message"
        complain(
            f"{type(error).__name__}: {scrub(said)} (unforeseen: a fault of equipoise rather than "
            f"of the table; {DEBUG} shows where)"
        )
        _show_traceback(debug)
        return ERROR
    finally:
        INPUTS.reset(watched)


def _hide_argument(word: str) -> None:
    """Keep a password that was typed out of messages and, on Linux, of the list of processes."""
    with contextlib.suppress(Exception):
        remember_url(word)
        _, password, _ = parted(word)
        if not password or "${" in password or not os.path.exists("/proc/self/stat"):
            return
        with open("/proc/self/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
        # the 48th and 49th field say where the arguments stand in memory
        begin, end = int(fields[45]), int(fields[46])
        text = ctypes.string_at(begin, end - begin)
        secret = os.fsencode(password)
        if secret in text:
            ctypes.memmove(begin, text.replace(secret, b"*" * len(secret)), end - begin)


def _show_traceback(debug: bool) -> None:
    if debug:
        sys.stderr.write(scrub(traceback.format_exc()))


def _interrupted() -> int:
    kept = ", ".join(str(path) for path in WRITTEN)
    said = f"{kept} had been written and is kept" if kept else "nothing was written"
    complain(f"Interrupted: {said}; what was there before is as it was.")
    return 130


def _execute(arguments: list[str], debug: bool) -> int:
    try:
        app(arguments, prog_name="equipoise")
    except Leave as leaving:
        return int(leaving.code)
    except SystemExit as leaving:
        # a mistake in the arguments has code 2 there, which here means "undetermined"
        return ERROR if leaving.code else DONE
    except EquipoiseError as error:
        complain(scrub(in_words_of(arguments, str(error))))
        _show_traceback(debug)
        return ERROR
    except (KeyboardInterrupt, Interrupted):
        return _interrupted()
    except BrokenPipeError:
        return ERROR
    except OSError as error:  # such as a name that is too long for the file system
        name = "" if error.filename is None else f" {short(str(error.filename))!r}"
        complain(f"A file cannot be reached: {scrub(short(why(error), 300))}{name}.")
        _show_traceback(debug)
        return ERROR
    return DONE
