"""Frozen dataclasses as JSON, read back by the types of their fields: no list of names repeats a type.

Fractions are written as `n/d`, enumerations by their value, dataclasses as objects, tuples and sets as lists; a class
with a compact text of its own (`encode`, `decode`) as that. A field that was not written has its default, and one that
only another release knows is left out.
"""

import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from types import NoneType
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
_Read = Callable[[Any], Any]

_COMPACT = json.JSONEncoder(separators=(",", ":"))


class JsonObject:
    """Base of dataclasses that travel as a JSON object inside of another one."""

    __slots__ = ()

    def encode(self) -> dict[str, Any]:
        """Write as JSON values."""
        return plain_values(self)

    @classmethod
    def decode(cls, values: Mapping[str, Any]) -> Self:
        """Read what `encode` wrote."""
        return from_values(cls, values)


def json_object(text: str | None) -> dict[str, Any]:
    """Return a JSON object; empty for any other text, such as statistics or a report that another writer left."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def plain_values(value: Any, *, is_complete: bool = False) -> dict[str, Any]:
    """Return the fields of a dataclass as values that JSON has: those at their default only if it is to be complete."""
    found = ((one, getattr(value, one.name)) for one in fields(value))
    return {one.name: _plain(held) for one, held in found if is_complete or not _is_default(one, held)}


def to_json(value: Any, *, is_complete: bool = False) -> str:
    """Write a dataclass as JSON text; equal values have equal texts."""
    return json.dumps(plain_values(value, is_complete=is_complete), sort_keys=True, separators=(",", ":"))


def from_json(kind: type[T], text: str | bytes) -> T:
    """Read what `to_json` wrote. Raises ValueError, TypeError or KeyError for any other text."""
    return from_values(kind, json.loads(text))


def from_values(kind: type[T], values: Mapping[str, Any]) -> T:
    """Build a dataclass from what `plain_values` returned."""
    of: type = kind
    readers, values = _readers(of), _checked(dict)(values)
    return kind(**{name: readers[name](value) for name, value in values.items() if name in readers})


def to_texts(value: T, since: T | None = None) -> dict[str, str]:
    """Write each field of a dataclass as a text of its own, such as the fields of a hash: JSON, or the text it is.

    since: the value that was written before; fields that hold the very same object are left out.
    """
    of: Any = value
    held = ((one.name, getattr(value, one.name)) for one in fields(of))
    new = {name: _plain(one) for name, one in held if since is None or one is not getattr(since, name)}
    return {name: one if isinstance(one, str) else _COMPACT.encode(one) for name, one in new.items()}


def from_texts(kind: type[T], texts: Mapping[str, str]) -> T:
    """Build a dataclass from what `to_texts` returned."""
    of: type = kind
    hints = _hints(of)
    known = ((name, text) for name, text in texts.items() if name in hints)
    return from_values(kind, {name: text if hints[name] is str else json.loads(text) for name, text in known})


def _is_default(one: Field[Any], value: Any) -> bool:
    if one.default is not MISSING:
        return bool(value == one.default)
    return one.default_factory is not MISSING and bool(value == one.default_factory())


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if is_dataclass(value):
        return value.encode() if hasattr(value, "encode") else plain_values(value)
    if isinstance(value, Mapping):
        return {name: _plain(held) for name, held in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(value)
    return [*map(_plain, value)] if isinstance(value, tuple) else value


@lru_cache(maxsize=256)
def _readers(kind: type) -> Mapping[str, _Read]:
    """Return what reads each field that the constructor of a dataclass takes."""
    hints = _hints(kind)
    return {one.name: _reader(hints[one.name]) for one in fields(kind) if one.init}


@lru_cache(maxsize=256)
def _hints(kind: type) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields; a state is read at every commit, and finding them takes longer."""
    return get_type_hints(kind)


def _reader(hint: Any) -> _Read:
    """Return what reads a value of this type, or of this type or None."""
    arguments = get_args(hint)
    if NoneType in arguments:
        (kind,) = (one for one in arguments if one is not NoneType)
        return _unless_none(_reader(kind))
    origin = get_origin(hint)
    if origin is tuple:
        read = _reader(arguments[0]) if arguments[-1] is ... else _as_it_is
        return lambda values: tuple(map(read, _checked(list)(values)))
    if origin is Mapping:
        read = _reader(arguments[1])
        return lambda values: {name: read(value) for name, value in _checked(dict)(values).items()}
    if origin is frozenset:
        return frozenset
    return _class_reader(hint) if isinstance(hint, type) else _as_it_is


def _class_reader(kind: type) -> _Read:
    if is_dataclass(kind):
        decode: _Read | None = getattr(kind, "decode", None)
        return decode or (lambda values: from_values(kind, values))
    if issubclass(kind, tuple):
        return lambda values: kind(*_checked(list)(values))
    if issubclass(kind, Fraction | Enum):
        return kind
    return _checked(kind) if kind in (int, str, bool) else _as_it_is


def _checked(kind: type) -> _Read:
    """Return what takes values of just this type: a number that is none would go wrong far from here."""

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}, found {str(value)[:40]!r}")
        return value

    return read


def _unless_none(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


def _as_it_is(value: Any) -> Any:
    return value
