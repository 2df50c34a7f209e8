"""Skips values of Avro that are not needed, without an object for each: most of a manifest are bounds and counts.

The bytes are of a block that `avro_limits` has checked; that they are values of the schema is not.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

Skip = Callable[[bytes, int], int]
"""Returns where the value ends that begins at a place, for one without a length perhaps beyond the end of the block.

Raises EOFError or IndexError if it does not end, ValueError if it is none.
"""

Named = Mapping[str, Any]
"""Types of a schema by their names, without namespaces."""

_AT_ONCE = 64
"""Values of one search, so that a file that claims billions of them takes no memory."""

_MORE = 0x80
"""Bit of a byte of a number that says that more follow."""

_NUMBER = re.compile(rb"[\x80-\xff]{0,9}+[\x00-\x7f]")
_SHORT_TEXT = b"(?:%b)" % b"|".join(b"\\x%02x.{%d}" % (2 * length, length) for length in range(_MORE // 2))
_SOURCES = {"int": _NUMBER.pattern, "long": _NUMBER.pattern, "bytes": _SHORT_TEXT, "string": _SHORT_TEXT}


def skip_of(schemas: Sequence[Any], named: Named) -> Skip:
    """Return what skips a value of each schema, one after another."""
    skips = [_skip_of(one, named) for one in schemas]

    def skip(block: bytes, at: int) -> int:
        for one in skips:
            at = one(block, at)
        return at

    return skip


def named_types(schema: Any) -> dict[str, Any]:
    """Return the types of a schema that have a name."""
    if isinstance(schema, list):
        return {name: one for part in schema for name, one in named_types(part).items()}
    if not isinstance(schema, dict):
        return {}
    inside = [schema.get(part) for part in ("type", "items", "values")]
    inside += [one["type"] for one in schema.get("fields") or ()]
    return named_types(inside) | ({_short(schema["name"]): schema} if "name" in schema else {})


def _skip_of(schema: Any, named: Named) -> Skip:
    if isinstance(schema, list):
        return _one_of([_skip_of(one, named) for one in schema])
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in _PLAIN:
        return _PLAIN[kind]
    return _MADE[kind](schema, named) if kind in _MADE else _skip_of(named[_short(kind)], named)


def _one_of(skips: Sequence[Skip]) -> Skip:
    def skip(block: bytes, at: int) -> int:
        which, at = _number(block, at)
        if not 0 <= which < len(skips):
            raise ValueError(f"a value is of type {which} of {len(skips)}")
        return skips[which](block, at)

    return skip


def _values(item: Any, named: Named) -> Skip:
    """Return what skips blocks of values, of which only those with a negative number say how long they are."""
    skip, source = _skip_of(item, named), _source(item)

    def skip_all(block: bytes, at: int) -> int:
        while True:
            count, at = _number(block, at)
            if count == 0:
                return at
            if count < 0:
                size, at = _number(block, at)
                at = _checked(block, at, size)
                continue
            for left in range(count, 0, -_AT_ONCE):
                some = min(left, _AT_ONCE)
                found = _pattern(source, some).match(block, at) if source else None
                at = found.end() if found else _one_by_one(skip, block, at, some)

    return skip_all


def _one_by_one(skip: Skip, block: bytes, at: int, count: int) -> int:
    for _ in range(count):
        at = _checked(block, skip(block, at), 0)
    return at


def _source(item: Any) -> bytes:
    """Return what a value looks like, as a regular expression that also leaves some out; empty if there is none."""
    if isinstance(item, dict) and item.get("type") == "record":
        parts = [_source(one["type"]) for one in item["fields"]]
        return b"".join(parts) if all(parts) else b""
    kind = item.get("type") if isinstance(item, dict) else item
    return _SOURCES.get(kind, b"") if isinstance(kind, str) else b""


@lru_cache(maxsize=4 * _AT_ONCE)
def _pattern(source: bytes, count: int) -> re.Pattern[bytes]:
    return re.compile(b"(?>%b){%d}" % (source, count), re.DOTALL)


def _number(block: bytes, at: int) -> tuple[int, int]:
    """Return a number as Avro writes it, the sign last, and where it ends."""
    found, end = block[at], at + 1
    if found >= _MORE:
        end, found = _after_number(block, at), 0
        for byte in block[at:end][::-1]:
            found = found << 7 | byte & ~_MORE
    return (found >> 1) ^ -(found & 1), end


def _after_number(block: bytes, at: int) -> int:
    found = _NUMBER.match(block, at)
    if found is None:
        raise EOFError(f"no number ends after {at}, and the block has {len(block)} bytes")
    return found.end()


def _after_text(block: bytes, at: int) -> int:
    length, at = _number(block, at)
    return _checked(block, at, length)


def _checked(block: bytes, at: int, length: int) -> int:
    if not 0 <= length <= len(block) - at:
        raise EOFError(f"{length} bytes are expected at {at}, and the block has {len(block)}")
    return at + length


def _after_bytes(size: int) -> Skip:
    return lambda _, at: at + size


def _short(name: str) -> str:
    return name.rpartition(".")[2]


_PLAIN: Mapping[str, Skip] = {
    **{kind: _after_bytes(size) for kind, size in (("null", 0), ("boolean", 1), ("float", 4), ("double", 8))},
    **dict.fromkeys(("int", "long", "enum"), _after_number),
    **dict.fromkeys(("bytes", "string"), _after_text),
}
_MADE: Mapping[str, Callable[[Any, Named], Skip]] = {
    "fixed": lambda schema, _: _after_bytes(int(schema["size"])),
    "array": lambda schema, named: _values(schema["items"], named),
    "map": lambda schema, named: _values(
        {"type": "record", "fields": [{"type": "string"}, {"type": schema["values"]}]}, named
    ),
    "record": lambda schema, named: skip_of([one["type"] for one in schema["fields"]], named),
    "error": lambda schema, named: skip_of([one["type"] for one in schema["fields"]], named),
}
