"""How a table's configuration is read into a layer of its policy, by the table of properties.

A property that cannot be used is a `PropertyIssue`, never dropped silently and never guessed.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from shared.errors import InvalidInput
from shared.policy.names import FOREIGN, MANUAL, PREFIX, QBEAST_SWITCH
from shared.policy.parsers import Parser
from shared.policy.policy import QUEUEING, PolicyLayer, PropertyIssue
from shared.policy.property_table import NAMES, PROPERTIES
from shared.policy.refused_properties import REFUSED
from shared.policy.row_order import parse_sort_columns

_UNKNOWN = "is ignored: unknown property"

_OWN = frozenset(PREFIX + prop.name for prop in PROPERTIES)

_PARSERS: tuple[tuple[str, str, Parser], ...] = tuple(
    (prop.policy_field, name, parse)
    for prop in PROPERTIES
    for name, parse in ((PREFIX + prop.name, prop.parse), *prop.aliases.items())
)
"""The field that each name sets, and its parser, in the order in which they win."""

_SORT_ORDERS = tuple(name for sets, name, _ in _PARSERS if sets in ("sort_by", "zorder_by"))

_SWITCHES = tuple(name for sets, name, _ in _PARSERS if sets == "enabled")

_KNOWN = frozenset(NAMES) | REFUSED.keys()

_NOT_DIGESTED = frozenset(PREFIX + prop.name for prop in PROPERTIES if prop.policy_field in QUEUEING)

_DIGESTED = frozenset(name for prop in PROPERTIES for name in prop.aliases) | REFUSED.keys()


def parse_first(
    configuration: Mapping[str, str], parsers: Iterable[tuple[str, str, Parser]]
) -> tuple[dict[str, Any], dict[str, str], list[PropertyIssue]]:
    """Parse for each field the first of its names that is set and valid; `parsers` has field, name and parser.

    An alias that is off leaves the field to a further one: two intervals of Amoro set one field here. Return the values
    and the names by field, and an issue for each name before it whose value is not valid.
    """
    values: dict[str, Any] = {}
    named: dict[str, str] = {}
    issues: list[PropertyIssue] = []
    for sets, name, parse in parsers:
        is_set = sets in values and (values[sets] is not None or named[sets].startswith(PREFIX))
        if name not in configuration or is_set:
            continue
        try:
            values[sets] = parse(configuration[name])
            named[sets] = name
        except ValueError as problem:
            issues.append(PropertyIssue(name, configuration[name], str(problem)))
    return values, named, issues


def read_properties(configuration: Mapping[str, str]) -> PolicyLayer:
    """Read a table's configuration into a layer; an own property wins over its aliases, in the order listed.

    A property that is about optimization and sets nothing is an issue: what was meant by it is not done.
    """
    if not any(name in _KNOWN or name.startswith((PREFIX, *FOREIGN)) for name in configuration):
        return _NO_PROPERTIES
    values, named, issues = parse_first(configuration, _PARSERS)
    _imply_reclamation(values, named)
    issues += [
        PropertyIssue(name, value, unknown_property(name))
        for name, value in sorted(configuration.items())
        if name.startswith(PREFIX) and name not in _OWN and name not in REFUSED
    ]
    issues += [
        PropertyIssue(name, configuration[name], why, is_blocking=False)
        for name, why in REFUSED.items()
        if name in configuration
    ]
    issues += [
        PropertyIssue(name, value, _UNKNOWN, is_blocking=False)
        for name, value in sorted(configuration.items())
        if name.startswith(FOREIGN) and name not in _KNOWN and name != MANUAL
    ]
    return PolicyLayer(values, named, tuple(issues))


def _imply_reclamation(values: dict[str, Any], named: dict[str, str]) -> None:
    """Add what `reclaim-after` needs, except where the same configuration sets it."""
    after_s = values.get("reclaim_after_s")
    if after_s is None:
        return
    needed = {"vacuum": True, "min_retain_s": max(after_s, LEAST_RECLAIM_S), **RECLAIM_INTERVALS_S}
    for policy_field, value in needed.items():
        if policy_field not in values:
            values[policy_field], named[policy_field] = value, named["reclaim_after_s"]


LEAST_RECLAIM_S = 86_400
"""Retention below which `reclaim-after` alone does not go: readers and writers that run for a day keep their files."""

RECLAIM_INTERVALS_S = {"vacuum_every_s": 3_600, "orphans_every_s": 86_400}
"""Intervals of its vacuums: to the hour where files were removed, and else each day, for the log."""

_NO_PROPERTIES = PolicyLayer()
"""Layer of a table without any Lakewright property, as most are."""


def unknown_property(name: str) -> str:
    """Return the error for an unknown property, with the one that was probably meant."""
    by_short_name = {known.removeprefix(PREFIX): known for known in NAMES}
    close = get_close_matches(name.removeprefix(PREFIX), by_short_name, n=1, cutoff=0.7)
    return (
        f"unknown property; did you mean {by_short_name[close[0]]}?"
        if close
        else "unknown property; docs/properties.md lists all"
    )


def read_settings(settings: Mapping[str, str]) -> PolicyLayer:
    """Read settings that a person gave for one call, by their full names or without the prefix, as `fan-in`.

    Raises InvalidInput for a name that nothing reads and for a value that cannot be used.
    """
    properties = as_properties(settings)
    for name, value in properties.items():
        layer = read_properties({name: value})
        for issue in layer.issues:
            raise InvalidInput(f"{name} = {value!r} cannot be used: {issue.reason}", field=name)
        if not layer.values:
            raise InvalidInput(f"{name}: {unknown_property(name)}", field=name)
    return read_properties(properties)


def as_properties(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings such as `fan-in` as full property names; full names are accepted, too."""
    return {name if "." in name else PREFIX + name: value for name, value in settings.items()}


def is_stopped_by_qbeast(before: Mapping[str, str], after: Mapping[str, str], *, was_stopped: bool) -> bool:
    """Return whether a table is off because Qbeast's switch, which had enabled it, was unset; any switch ends that.

    `before` and `after` are its configurations around a change. In Qbeast a table without the switch is not optimized.
    """
    if any(name in after for name in _SWITCHES):
        return False
    layer = read_properties(before)
    return was_stopped or (layer.property_names.get("enabled") == QBEAST_SWITCH and layer.values["enabled"] is True)


def first_sort_column(configuration: Mapping[str, str]) -> str | None:
    """Return the first column of the sort order that a table's own properties validly name, None without an order."""
    if not any(name in configuration for name in _SORT_ORDERS):
        return None
    values = read_properties(configuration).values
    named = values.get("sort_by") or values.get("zorder_by")
    return None if named is None else parse_sort_columns(named)[0].name


def names_of(*policy_fields: str) -> frozenset[str]:
    """Return the names of all properties that set one of these fields, aliases included."""
    return frozenset(name for sets, name, _ in _PARSERS if sets in policy_fields)


def is_switched_off(configuration: Mapping[str, str]) -> bool:
    """Return whether the table's own properties validly disable automatic optimization."""
    return read_properties(configuration).values.get("enabled") is False


def yields_to_writers(configuration: Mapping[str, str]) -> bool:
    """Return whether the table's own properties let its catalog undo rewrites for writers."""
    return _YIELD in configuration and read_properties(configuration).values.get("yield_to_writers") is True


_YIELD = PREFIX + "yield-to-writers"


def policy_digest(configuration: Mapping[str, str]) -> str:
    """Return a digest of all properties that can bear on a rewrite: while it stays, so does what they request."""
    properties = sorted(
        (name, value)
        for name, value in configuration.items()
        if name in _DIGESTED or (name.startswith(PREFIX) and name not in _NOT_DIGESTED)
    )
    return hashlib.blake2b(json.dumps(properties).encode(), digest_size=8).hexdigest()
