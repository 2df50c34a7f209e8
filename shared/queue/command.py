"""A transition is a value: which script, with which keys and arguments, and how to read the reply. No I/O is in it.

Every transition may be sent again when its reply was lost: a nonce, a token or idempotence makes the repetition
harmless. Executors rely on that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from shared.errors import LakewrightError, PermanentError, RetryableError
from shared.queue.lua_library import ScriptName
from shared.retry import RetryPolicy

R = TypeVar("R")

_TEMPORARY = ("OOM", "BUSY", "LOADING", "READONLY", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS")
"""Error codes of a server that cannot serve at the moment: full, busy, loading, a replica, unable to persist."""

NEEDED_RIGHTS = "docs/deploy.md lists what a user of Redis needs"
"""Advice where the server refuses a command."""

LOST_REPLY = RetryPolicy(max_attempts=3, first_s=0.1)
"""Retries of a transition whose reply was lost: three tries with 0.1 s and 0.2 s between ride out a reconnect; longer
outages are the caller's to wait for."""


WRONG_TYPE = "WRONGTYPE"
"""Error code of a call for a key of another type than the call needs."""


class WrongKey(RetryableError):  # noqa: N818 - as the other errors
    """A key has another type than ours have; nothing is wrong with the table that was asked about."""

    def __init__(self, address: str, message: str) -> None:
        super().__init__(
            f"a key at {address} has another type than Lakewright gives it: another program writes into this database, "
            f"or a restore mixed two; `lakewright status` names it if all tables depend on it: {message}"
        )


@dataclass(frozen=True, slots=True)
class Command(Generic[R]):
    """One call of one script; `decode` turns the raw reply (bytes or str) into its meaning."""

    script: ScriptName
    keys: tuple[str, ...]
    args: tuple[str | int | bytes, ...]
    decode: Callable[[Any], R]


def error_of_reply(script: ScriptName, address: str, message: str) -> LakewrightError:
    """Return the error that a server's error reply means; `message` begins with the server's code."""
    code, _, rest = message.partition(" ")
    if code == "LWSCHEMA":
        theirs, ours, *_ = rest.split()
        return PermanentError(
            f"the queue at {address} has schema {theirs}, this release knows {ours}: {script} was refused; upgrade this"
            " process"
        )
    if code == WRONG_TYPE:
        return WrongKey(address, message)
    if code in _TEMPORARY:
        return RetryableError(f"the queue at {address} cannot run {script} now: {message}")
    advice = f" ({NEEDED_RIGHTS})" if code == "NOPERM" or rest.startswith("unknown command") else ""
    return PermanentError(f"the queue at {address} refused {script}{advice}: {message}")


def unreachable(script: ScriptName, address: str, attempts: int, problem: Exception) -> RetryableError:
    """Return the error for a server that gave no reply; whether the last try took effect is not known."""
    return RetryableError(
        f"the queue at {address} did not answer {script} in {attempts} tries; check that it runs and can be reached:"
        f" {problem}"
    )
