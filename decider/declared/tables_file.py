"""The tables file (YAML or JSON): which tables there are, with names, tenants, overrides and pauses.

It is read as a whole or not at all. A file with one mistake changes nothing, and the mistake has a line and a column.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import yaml

from decider.events.resolver import AllowedRoots
from decider.events.table_names import name_at, tenant_at
from decider.state.effective_policy import LogStatus, PolicyDefaults
from shared.errors import InvalidInput
from shared.paths.locations import canonical_location, table_id
from shared.policy.properties import unknown_property
from shared.policy.property_table import NAMES
from shared.table import TABLE_NAME, TableId, TableRef

MAX_BYTES = 64 * 1_048_576
"""Largest file: 200,000 tables have some 40 MB, and what is read by mistake may be endless."""

MAX_DEPTH = 16
"""Mappings and lists inside each other, of which a file needs four: the parser in C ends the process on deep ones."""

FIELDS = ("location", "name", "tenant", "paused", "properties")

_NAME = re.compile(TABLE_NAME)
_TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_BOOLEANS = {"true": True, "false": False}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # The one in C is ten times as fast.
_ANY_TABLE = TableRef(TableId(""), "", "")


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """One entry: a table as it is to be registered.

    `paused` is None where the file does not say; `place` is the line and column of the entry.
    """

    id: TableId
    location: str
    name: str
    tenant: str
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    paused: bool | None = None
    place: str = ""

    def registration(self, known: TableRef | None) -> TableRef:
        """Return the registration that the entry demands, where `known` is the present one."""
        before = known or TableRef(self.id, "", self.location, is_discovered=True)
        return replace(
            before,
            name=self.name,
            tenant=self.tenant,
            properties=dict(self.properties),
            is_discovered=False,
            is_declared=True,
            was_registered=before.was_registered if before.is_declared else not before.is_discovered,
            declared_paused=self.paused,
        )


@dataclass(frozen=True, slots=True)
class DeclaredTables:
    """Declared tables, by id, and the digest of its content."""

    digest: str
    tables: Mapping[TableId, DeclaredTable]


class _Mistake(Exception):  # noqa: N818 - the name describes the event
    """A mistake at a node of the document."""

    def __init__(self, node: Any, message: str) -> None:
        super().__init__(message)
        self.node = node


class TablesFileReader:
    """Reads files under the rules of one decider: its roots, its default tenant, and the properties it knows."""

    def __init__(self, roots: AllowedRoots, defaults: Callable[[], PolicyDefaults]) -> None:
        self._roots = roots
        self._defaults = defaults

    def read(self, data: bytes, source: str) -> DeclaredTables:
        """Return what a file declares; raises InvalidInput that begins with `source:line:column`."""
        if len(data) > MAX_BYTES:
            raise InvalidInput(f"{source}: the file has {len(data)} bytes, and {MAX_BYTES} is the limit")
        try:
            text = data.decode()
            _require_flat(text)
            root = yaml.compose(text, Loader=_LOADER)
            return DeclaredTables(blake2b(data, digest_size=16).hexdigest(), self._tables(root))
        except UnicodeDecodeError as problem:
            line = data.count(b"\n", 0, problem.start) + 1
            raise InvalidInput(f"{source}:{line}: byte {data[problem.start]:#04x} is not UTF-8") from problem
        except yaml.MarkedYAMLError as problem:
            raise InvalidInput(f"{source}:{_place(problem.problem_mark)}: {_text(problem)}") from problem
        except yaml.YAMLError as problem:
            raise InvalidInput(f"{source}: {problem}") from problem
        except _Mistake as problem:
            place = "" if problem.node is None else f":{_place(problem.node.start_mark)}"
            raise InvalidInput(f"{source}{place}: {problem}") from problem

    def _tables(self, root: Any) -> dict[TableId, DeclaredTable]:
        if root is None:
            raise _Mistake(None, "the file is empty; write `tables: []` to declare no table")
        top = _mapping(root, ("tables",), "the file")
        if "tables" not in top:
            raise _Mistake(root, "`tables` is missing")
        if not isinstance(top["tables"], yaml.SequenceNode):
            raise _Mistake(top["tables"], "`tables` must be a list")
        found: dict[TableId, DeclaredTable] = {}
        names: dict[str, DeclaredTable] = {}
        for node in top["tables"].value:
            one = self._table(node)
            if (other := found.setdefault(one.id, one)) is not one:
                raise _Mistake(node, f"{one.location} is declared at {other.place} already")
            if (other := names.setdefault(one.name, one)) is not one:
                raise _Mistake(node, f"the name {one.name!r} belongs to the table at {other.place}")
        return found

    def _table(self, node: Any) -> DeclaredTable:
        given = _mapping(node, FIELDS, "a table")
        if "location" not in given:
            raise _Mistake(node, "`location` is missing")
        location = self._location(given["location"])
        identity = table_id(location)
        return DeclaredTable(
            id=identity,
            location=location,
            name=_matching(given.get("name"), _NAME, "name") or name_at(location, self._roots.roots) or identity,
            tenant=_matching(given.get("tenant"), _TENANT, "tenant")
            or tenant_at(location, self._roots.roots, self._roots.tenant),
            properties=self._properties(given.get("properties")),
            paused=_boolean(given.get("paused")),
            place=f"line {_place(node.start_mark)}",
        )

    def _location(self, node: Any) -> str:
        try:
            location = canonical_location(_scalar(node, "location"))
            self._roots.require_allowed(location)
        except InvalidInput as problem:
            raise _Mistake(node, str(problem)) from problem
        return location

    def _properties(self, node: Any) -> dict[str, str]:
        if node is None:
            return {}
        nodes = _mapping(node, None, "`properties`")
        found = {name: _scalar(value, name) for name, value in nodes.items()}
        for name, reason in property_problems(found, self._defaults()):
            raise _Mistake(nodes[name], f"{name}: {reason}")
        return found


def _require_flat(text: str) -> None:
    """Raise _Mistake at the first mapping or list that is too deep, before anything is built of the document."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _Mistake(event, f"mappings and lists are inside each other more than {MAX_DEPTH} times")


def property_problems(properties: Mapping[str, str], defaults: PolicyDefaults) -> Iterator[tuple[str, str]]:
    """Yield the overrides that cannot be applied, each with the reason."""
    for issue in defaults.resolve(replace(_ANY_TABLE, properties=properties), {}, {}, LogStatus()).issues:
        yield issue.property, issue.reason
    for name in sorted(properties.keys() - NAMES):
        yield name, unknown_property(name)


def _mapping(node: Any, allowed: tuple[str, ...] | None, what: str) -> dict[str, Any]:
    """Return the values of a mapping by key; `allowed` None: any key."""
    if not isinstance(node, yaml.MappingNode):
        raise _Mistake(node, f"{what} must be a mapping")
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = _scalar(key, "a key")
        if allowed is not None and name not in allowed:
            raise _Mistake(key, f"{name!r} is unknown in {what}; known: {', '.join(allowed)}")
        if name in found:
            raise _Mistake(key, f"{name!r} is there twice")
        found[name] = value
    return found


def _scalar(node: Any, what: str) -> str:
    """Return a text or number as it is written."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null" or not node.value:
        raise _Mistake(node, f"{what} must be a text or a number")
    return str(node.value)


def _matching(node: Any, pattern: re.Pattern[str], what: str) -> str | None:
    if node is None:
        return None
    text = _scalar(node, what)
    if not pattern.fullmatch(text):
        raise _Mistake(node, f"{text[:200]!r} is no {what}: expected {pattern.pattern}")
    return text


def _boolean(node: Any) -> bool | None:
    if node is None:
        return None
    text = _scalar(node, "paused")
    if text not in _BOOLEANS:
        raise _Mistake(node, f"`paused` is {text[:200]!r}; expected true or false")
    return _BOOLEANS[text]


def _place(mark: Any) -> str:
    return f"{mark.line + 1}:{mark.column + 1}"


def _text(problem: Any) -> str:
    return " ".join(part for part in (problem.context, problem.problem) if part)
