"""What an exception from the JVM says: the names of its classes, and one line for people."""

import re
from collections.abc import Iterator
from typing import Any

_LINE_CHARACTERS = 500


def jvm_class_names(error: BaseException) -> tuple[str, ...]:
    """Return the simple class names of an error, Python's and those of the JVM's chain of causes, outermost first."""
    python = [cls.__name__ for cls in type(error).__mro__]
    return (*python, *(str(cause.getClass().getSimpleName()) for cause in _causes(error)))


def _causes(error: BaseException) -> Iterator[Any]:
    """Walk the JVM's chain of causes, whichever wrapper (py4j's or PySpark's) brought the first of them."""
    cause: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def first_line(error: BaseException) -> str:
    """Return class and first line of an error, and of its innermost cause in the JVM; at most 500 characters each."""
    causes = list(_causes(error))
    if not causes:
        return _line(type(error).__name__, str(error))
    outer, inner = (_line(str(c.getClass().getSimpleName()), str(c.getMessage())) for c in (causes[0], causes[-1]))
    return outer if outer == inner else f"{outer} <- {inner}"


def matching_line(error: BaseException, pattern: re.Pattern[str]) -> str:
    """Return class and first line of the outermost cause that the pattern is found in, an empty string if none is."""
    causes = ((str(cause.getClass().getSimpleName()), str(cause.getMessage())) for cause in _causes(error))
    lines = (_line(*cause) for cause in causes)
    return next((line for line in lines if pattern.search(line)), "")


def _line(name: str, text: str) -> str:
    return f"{name}: {text.strip().split(chr(10), 1)[0][:_LINE_CHARACTERS]}"
