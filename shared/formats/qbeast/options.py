"""How a table's owner wants its Qbeast index optimized: the properties of the Unified Storage Engine, and one of ours.

Its documents are of two generations, each with names of its own. Where both name a value, the newer name wins.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from shared.errors import InvalidInput
from shared.formats.qbeast.iterations import IndexOptions
from shared.policy.names import PREFIX, QBEAST, REVISION_REWRITE
from shared.policy.parsers import Parser, boolean, integer, parse_size, sample_or_off
from shared.policy.policy import PropertyIssue
from shared.policy.properties import parse_first
from shared.whole_numbers import whole_number

_AUTO = f"{QBEAST}autoOptimize."
_UNINDEXED = f"{_AUTO}optimizeUnindexedFiles."

_WHOLE_ON_REQUEST = "whole_on_request"
"""Whole revisions are rewritten on request alone: by themselves, each append would lead to a rewrite of all files."""


def moment_ms(text: str) -> int:
    """Read milliseconds since 1970, or a date and time, which are in UTC unless they name an offset."""
    text = text.strip()
    if (found_ms := whole_number(text)) is not None:
        return found_ms
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("expected milliseconds since 1970, or a time such as 2026-01-31 14:03:00") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def batch_size(text: str) -> int:
    """Read the bytes of a batch, at least 1."""
    found = parse_size(text)
    if found < 1:
        raise ValueError("expected a size of 1 byte or more")
    return found


_PARSERS: tuple[tuple[str, str, Parser], ...] = (
    ("revision", f"{_AUTO}revisionId", integer(0, 2**31)),
    ("revision", f"{QBEAST}revision-id", integer(0, 2**31)),
    ("indexes_files", f"{_UNINDEXED}enabled", boolean),
    ("indexes_first", f"{_UNINDEXED}prioritize", boolean),
    ("batch_bytes", f"{_UNINDEXED}batchBytes", batch_size),
    ("from_ms", f"{_UNINDEXED}fromTimestamp", moment_ms),
    ("budget_bytes", f"{QBEAST}bytes-per-iter", parse_size),
    ("sample", f"{PREFIX}index-sample", sample_or_off),
    (_WHOLE_ON_REQUEST, REVISION_REWRITE, boolean),
)
"""The option that each property sets, and its parser, in the order in which they win."""


def read_options(configuration: Mapping[str, str]) -> tuple[IndexOptions, tuple[PropertyIssue, ...]]:
    """Return the options that a table's properties set, and an issue for each property that has no effect."""
    values, _, issues = parse_first(configuration, _PARSERS)
    values.pop(_WHOLE_ON_REQUEST, None)
    options = IndexOptions(**values)
    try:
        options.strategies  # noqa: B018 - raises where none is left
    except InvalidInput as problem:
        name = f"{_UNINDEXED}enabled"
        issues.append(PropertyIssue(name, configuration[name], str(problem)))
        options = IndexOptions(**{key: value for key, value in values.items() if key != "indexes_files"})
    return options, tuple(issues)


def revision_issue(configuration: Mapping[str, str], reason: str) -> PropertyIssue:
    """Return the issue for the property that names the revision to optimize."""
    name = next(name for option, name, _ in _PARSERS if option == "revision" and name in configuration)
    return PropertyIssue(name, configuration[name], reason)
