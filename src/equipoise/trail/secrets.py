"""Passwords: taken from the environment, remembered so that no message shows them."""

import os
import re
from urllib.parse import quote, unquote, urlsplit

from equipoise.errors import TrailError

#: What stands where a password was.
HIDDEN = "***"

_VARIABLE = re.compile(r"\$\{(\w+)\}")
# user:password@ of a URL; the password may hold any sign but a blank
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/?#@]*:)([^\s'\"]*)@", re.IGNORECASE)
_PARAMETER = re.compile(
    r"(\b[\w-]*(?:password|passwd|token|secret|api_?key)[\w-]*=)([^\s&;'\"]+)", re.IGNORECASE
)

# Engines quote what they were given in errors of their own, so what must not be shown is kept here.
_KNOWN: set[str] = set()


def expand(source: str) -> str:
    """Put the values of environment variables where ``${NAME}`` stands.

    >>> os.environ["EQUIPOISE_DOCTEST"] = "h"
    >>> expand("postgres://auditor@${EQUIPOISE_DOCTEST}/db")
    'postgres://auditor@h/db'
    """

    def value(found: "re.Match[str]") -> str:
        name = found.group(1)
        if name not in os.environ:
            raise TrailError(
                f"The source {scrub(source)!r} needs the environment variable {name}, which is not "
                "set."
            )
        return os.environ[name]

    return _VARIABLE.sub(value, source)


def remember(secret: str | None) -> None:
    """Keep a password out of every message from now on."""
    if secret and secret != HIDDEN:
        _KNOWN.update({secret, quote(secret, safe=""), unquote(secret)})


def remember_url(url: str) -> None:
    """Keep the password of a connection string, if it has one, out of every message."""
    try:
        remember(urlsplit(url).password)
    except ValueError:
        return


def scrub(text: str) -> str:
    """The text without passwords, those of connection strings and those that were used.

    >>> scrub("cannot reach postgres://auditor:hunter2@db/decisions?sslpassword=x")
    'cannot reach postgres://auditor:***@db/decisions?sslpassword=***'
    """
    # longest first: one password may be a part of another
    for secret in sorted(_KNOWN, key=len, reverse=True):
        # a short one would tear up ordinary words; the patterns below still catch it in a URL
        if len(secret) >= 4:
            text = text.replace(secret, HIDDEN)
    text = _IN_URL.sub(lambda found: f"{found.group(1)}{_hidden(found.group(2))}@", text)
    return _PARAMETER.sub(lambda found: f"{found.group(1)}{_hidden(found.group(2))}", text)


def _hidden(secret: str) -> str:
    # the name of an environment variable tells nothing, and whoever repeats the audit needs it
    return secret if not secret or _VARIABLE.fullmatch(secret) else HIDDEN
