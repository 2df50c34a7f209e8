"""Text of an exception from the JVM: its chain of causes, and some lines for people."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

_LINE_CHARACTERS = 500
_LINES = 3
"""Lines of a message that are repeated: the first names the failure, the next ones what it is about."""

_MAX_CAUSES = 20
"""Links of a chain that are read; a chain may be a circle."""

_STACK = re.compile(r"\s*(at \S+\(|\.\.\. \d+ more|Driver stacktrace:|Caused by: )")
"""Where the stack trace begins that Spark appends to a message."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One exception of a chain; `kinds` are the simple names of its class, of its ancestors and of their interfaces."""

    name: str
    kinds: frozenset[str]
    text: str


def causes(error: BaseException) -> tuple[Cause, ...]:
    """Return the JVM's chain of causes, the outermost first; Python's where the JVM raised nothing."""
    found = tuple(Cause(_name(one), _kinds(one), _text(one)) for one in _causes(error))
    if found:
        return found
    return (Cause(type(error).__name__, frozenset(cls.__name__ for cls in type(error).__mro__), str(error)),)


def jvm_class_names(error: BaseException) -> tuple[str, ...]:
    """Return the simple class names of an error, Python's and the JVM's chain of causes, outermost first."""
    python = [cls.__name__ for cls in type(error).__mro__]
    return (*python, *map(_name, _causes(error)))


def first_line(error: BaseException) -> str:
    """Return class and first line of an error, and of its innermost cause in the JVM; at most 500 characters each."""
    found = list(_causes(error))
    if not found:
        return _line(type(error).__name__, str(error))
    outer, inner = (_line(_name(one), _text(one)) for one in (found[0], found[-1]))
    return outer if outer == inner else f"{outer} <- {inner}"


def first_lines(error: BaseException) -> str:
    """Return the first lines of an error and of each of its causes in the JVM that says more than those before it."""
    stated: list[str] = []
    for one in causes(error):
        lines = f"{one.name}: {_lines(one.text)}"
        if not any(lines in before for before in stated):
            stated.append(lines)
    return " <- ".join(stated)


def matching_line(error: BaseException, pattern: re.Pattern[str]) -> str:
    """Return class and first line of the outermost cause that the pattern is found in, an empty string if none is."""
    lines = (_line(_name(one), _text(one)) for one in _causes(error))
    return next((line for line in lines if pattern.search(line)), "")


def _causes(error: BaseException) -> Iterator[Any]:
    """Walk the JVM's chain of causes, whichever wrapper (py4j's or PySpark's) brought the first of them."""
    return islice(_chain(getattr(error, "java_exception", None) or getattr(error, "_origin", None)), _MAX_CAUSES)


def _chain(cause: Any) -> Iterator[Any]:
    while cause is not None:
        yield cause
        cause = cause.getCause()


def _name(cause: Any) -> str:
    return str(cause.getClass().getSimpleName())


def _kinds(cause: Any) -> frozenset[str]:
    found: set[str] = set()
    each = cause.getClass()
    while each is not None:
        found |= {str(each.getSimpleName()), *(str(one.getSimpleName()) for one in each.getInterfaces())}
        each = each.getSuperclass()
    return frozenset(found)


def _text(cause: Any) -> str:
    """Return the message, and where the exception was raised if it has none."""
    message = cause.getMessage()
    if message is not None:
        return str(message)
    stack = list(cause.getStackTrace())
    return f"raised at {stack[0].toString()}" if stack else "without a message"


def _lines(text: str) -> str:
    """Return the first lines of a message in one, without the stack trace that may follow."""
    lines = []
    for line in text.strip().splitlines():
        if _STACK.match(line):
            break
        if line.strip():
            lines.append(line.strip()[:_LINE_CHARACTERS])
    return " ".join(lines[:_LINES])


def _line(name: str, text: str) -> str:
    return f"{name}: {text.strip().split(chr(10), 1)[0][:_LINE_CHARACTERS]}"
