"""An answer over HTTP is read up to a size and a moment: a server decides how much it sends, and how slowly."""

from collections.abc import Callable, Iterable

from shared.errors import PermanentError, RetryableError

MAX_ANSWER_BYTES = 128 * 1024 * 1024
"""Larger answers are not read: the metadata of a table with a long history have a thousandth, and a page of fifty
tables with a thousand columns each has a quarter of that."""


def joined(parts: Iterable[bytes], of: str, *, until_s: float, now_s: Callable[[], float]) -> bytes:
    """Return the parts of an answer as one: a client's time limit holds for each part, of any number.

    of: begins the errors, as in `catalog unity: an answer of https://…`. Raises PermanentError for one that is too
    large, RetryableError for one that is not at its end at `until_s`.
    """
    read: list[bytes] = []
    size = 0
    for part in parts:
        read.append(part)
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise PermanentError(f"{of} has more than {MAX_ANSWER_BYTES} bytes, which is not read")
        if now_s() > until_s:
            raise RetryableError(f"{of} took too long; does the server, or a proxy before it, send slowly?")
    return b"".join(read)
