"""Reads whole numbers from texts that others write: tags, properties, summaries of snapshots."""

MAX_LONG = 2**63 - 1
"""The largest number that Java's long, in which engines write such texts, can hold."""

_MAX_DIGITS = len(str(MAX_LONG))


def whole_number(text: str) -> int | None:
    """Return the number that ASCII digits name, None for any other text and beyond Java's long.

    `int` alone reads digits of other scripts, and raises ValueError for `²`, which `str.isdigit` lets pass, and for
    thousands of digits.
    """
    if not (len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit()):
        return None
    found = int(text)
    return found if found <= MAX_LONG else None
