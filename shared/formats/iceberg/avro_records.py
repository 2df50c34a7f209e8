"""Records of an Avro file, of which only those fields are decoded that are needed.

fastavro decodes them: pyiceberg 0.12 takes nine times as long for ten entries, and cuts doubles to 32 bits. Of all that
follows the last needed field of a record, no value is made.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import fastavro

from shared.formats.iceberg.avro_limits import KNOWN_SCHEMAS, AvroFile, check_blocks
from shared.formats.iceberg.avro_skip import Skip, named_types, skip_of

_CALENDAR = re.compile(rb'"logicalType"(\s*:\s*"(?:date|time|timestamp|local-timestamp)[^"]*")')
"""Where a schema calls a number a date or a time."""

_SHAPES = 4 * KNOWN_SCHEMAS
"""Shapes that are remembered: of one schema other fields are read for lists, live files, and entries of both kinds."""

T = TypeVar("T")

Fields = tuple[str, ...]
"""Fields that are needed; fields of a record within the record are named after it and a point."""


def decoded(body: bytes, fields: Fields, decode: Callable[[Any], T]) -> tuple[T, ...]:
    """Decode the records of a file, of each at least these fields; raises whatever is raised for damage.

    Dates and times may be any that Iceberg can store. fastavro makes dates of Python of them, which end with the year
    9999; beyond, they are read as the numbers they are.
    """
    checked = check_blocks(body)
    try:
        return tuple(decode(raw) for raw in _records(checked, fields))
    except (OverflowError, ValueError):
        return tuple(decode(raw) for raw in fastavro.reader(io.BytesIO(_without_calendar(body))))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The schema of what is decoded of a record, and what skips the rest of it."""

    decoded: Any
    skip: Skip


def _records(checked: AvroFile, fields: Fields) -> Iterator[Any]:
    """Decode the records of a file; of a schema that is known, without to parse it again."""
    shape = _shape(checked.schema, fields)
    for count, block in checked.blocks:
        stream = io.BytesIO(block)
        for left in range(count, 0, -1):
            yield fastavro.schemaless_reader(stream, shape.decoded, None)
            if left > 1:
                stream.seek(shape.skip(block, stream.seek(0, io.SEEK_CUR)))


@lru_cache(maxsize=_SHAPES)
def _shape(text: bytes, fields: Fields) -> _Shape:
    schema = json.loads(text)
    record, rest = _cut(schema, fields)
    return _Shape(fastavro.parse_schema(record), skip_of(rest, named_types(schema)))


def _cut(record: dict[str, Any], fields: Fields) -> tuple[dict[str, Any], Sequence[Any]]:
    """Return the beginning of a record with all fields that are needed, and the types of what follows."""
    listed = record["fields"]
    heads = {one.partition(".")[0] for one in fields}
    end = 1 + max((at for at, one in enumerate(listed) if one["name"] in heads), default=-1)
    kept, rest = list(listed[:end]), [one["type"] for one in listed[end:]]
    within = tuple(one.partition(".")[2] for one in fields if kept and one.startswith(f"{kept[-1]['name']}."))
    if within and "fields" in kept[-1]["type"]:
        inner, left = _cut(kept[-1]["type"], within)
        kept[-1], rest = {**kept[-1], "type": inner}, [*left, *rest]
    return {**record, "fields": kept}, rest


def _without_calendar(body: bytes) -> bytes:
    """Return a file whose schema calls dates and times by no name that fastavro knows; of the same length."""
    stream = io.BytesIO(body)
    fastavro.reader(stream)
    blocks = stream.read()
    return _CALENDAR.sub(rb'"logicaltype"\1', body[: len(body) - len(blocks)]) + blocks
