"""The second reader: pyarrow decodes, and DuckDB only hashes what it is given in a form that it keeps as it is.

It reads what DuckDB refuses or does not see: files of ORC, text that is no UTF-8, times beyond or below microseconds,
payloads of NaN, page checksums. Text goes in as bytes, numbers of floating point as integers, times as seconds and
nanoseconds, decimals as bytes: which form depends on the table's type only, so that both sides have the same. It takes
four to six times the CPU of the first reader, and is there where pyarrow is installed.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from actor.proofread.arrow_files import field_id, opened
from actor.proofread.comparison import judge_counts
from actor.proofread.deleted_rows import note_deleted
from actor.proofread.file_fields import FileField
from actor.proofread.hashing import MOST_NESTED_LISTS
from actor.proofread.locations import is_local, readable
from actor.proofread.matching import Found, match
from actor.proofread.model import CannotRead, ProofFile, Rewritten
from actor.proofread.sql import DEAD, literal
from actor.proofread.task import Answer, ReadEnding
from actor.proofread.vectors import ReadBytes

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError:
    pa = pc = None

_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "row_id", "row_version"})
_TIMES = frozenset({"time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def compare_again(connection: duckdb.DuckDBPyConnection, group: Rewritten, read: ReadBytes) -> Answer:
    """Compare by rows; raises CannotRead, ColumnsUnclear and what DuckDB raises."""
    if pa is None:
        raise CannotRead("pyarrow, which could, is not installed")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        stored = _sums(connection, group, group.inputs, read)
        written = _sums(connection, group, group.outputs, read)
    except (pa.ArrowException, OSError) as failure:
        raise CannotRead(f"pyarrow cannot read it ({type(failure).__name__})") from failure
    if stored == written:
        return judge_counts(connection, group, stored[0])
    pairs = zip(group.columns, stored[2:], written[2:], strict=True)
    columns = tuple(column.shown or column.name for column, one, other in pairs if one != other)
    parts = [f"values differ in the columns {', '.join(columns)}"] if columns else []
    if stored[0] != written[0]:
        parts.insert(0, f"the inputs hold {stored[0]:,} rows, the outputs {written[0]:,}")
    text = "; ".join(parts) or "rows are put together in another way"
    return Answer(ReadEnding.DIFFERENT, text, stored[0], columns)


def _sums(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, files: Sequence[ProofFile], read: ReadBytes
) -> list[int]:
    """Return the number of live rows, the sum of their hashes, and the sum of each column's."""
    note_deleted(connection, group, files, read)
    totals = [0] * (2 + len(group.columns))
    for file in files:
        if not is_local(file.path):
            raise CannotRead("the second reader reads local files only")
        with opened(readable(file.path)) as (schema, batches):
            found = _sum_of_file(connection, group, file, schema, batches)
        totals = [total + (value or 0) for total, value in zip(totals, found, strict=True)]
    return totals


def _sum_of_file(
    connection: duckdb.DuckDBPyConnection, group: Rewritten, file: ProofFile, stored: Any, decoded: Iterator[Any]
) -> Sequence[Any]:
    fields = tuple(_field(field, index) for index, field in enumerate(stored))
    found = match(group.columns, fields, group.found_by, file.constants)
    names = [f"c{index}" for index in range(len(found))]
    types = [_plain_type(one) for one in found]
    schema = pa.schema([*zip(names, types, strict=True), ("position", pa.int64())])
    described = zip(names, found, types, strict=True)
    hashes = [_hash(_inherited(name, one, file), type_) for name, one, type_ in described]
    batches = pa.RecordBatchReader.from_batches(schema, _batches(decoded, found, schema))
    # Each hash is computed once, and summed for its column and in the row's.
    inner = ", ".join(f"{one} AS h{index}" for index, one in enumerate(hashes))
    place = literal(readable(file.path))
    dead = f"ANTI JOIN (SELECT row FROM {DEAD} WHERE place = {place}) ON position = row" if file.deletes else ""
    each = ", ".join(f"sum(h{index})" for index in range(len(hashes)))
    row = ", ".join(f"h{index}" for index in range(len(hashes)))
    connection.register("lakewright_batches", batches)
    try:
        query = f"SELECT count(*), sum(hash(hash({row}))), {each} FROM (SELECT {inner} FROM lakewright_batches {dead})"
        return connection.execute(query).fetchone() or ()
    finally:
        connection.unregister("lakewright_batches")


def _batches(decoded: Iterator[Any], found: Sequence[Found], schema: Any) -> Iterator[Any]:
    """Yield the rows of a file in their plain form, with their positions."""
    position = 0
    for batch in decoded:
        rows = batch.num_rows
        # Joined with nothing, an array is copied, and none of its parts begins in the middle of another.
        whole = [pa.concat_arrays([array, array.slice(0, 0)]) for array in batch.columns]
        arrays = [_plain(whole[int(one.field.sql)] if one.field else None, one, rows) for one in found]
        yield pa.RecordBatch.from_arrays(
            [*arrays, pa.array(range(position, position + rows), pa.int64())], schema=schema
        )
        position += rows


def _inherited(name: str, found: Found, file: ProofFile) -> str:
    """Return a column with what a row inherits from its file."""
    if found.column.kind == "row_id" and file.first_row_id is not None:
        return f"coalesce({name}, {file.first_row_id} + position)"
    if found.column.kind == "row_version" and file.sequence is not None:
        return f"coalesce({name}, {file.sequence})"
    return name


def _field(field: Any, place: int) -> FileField:
    """Return a field of Arrow with its place, by which it is found again."""
    type_ = field.type
    if pa.types.is_struct(type_):
        kind, parts = "struct", [type_.field(index) for index in range(type_.num_fields)]
    elif pa.types.is_map(type_):
        kind, parts = "map", [type_.key_field, type_.item_field]
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind, parts = "list", [type_.value_field]
    else:
        kind, parts = str(type_), []
    below = tuple(_field(part, index) for index, part in enumerate(parts))
    return FileField(field.name, field_id(field), kind, str(place), below)


def _hash(source: str, type_: Any, depth: int = 0) -> str:
    """Return the expression for a plain form, whose leaves `hash` distinguishes."""
    if pa.types.is_struct(type_):
        parts = (_hash(f"({source}).{part.name}", part.type, depth) for part in type_)
        return f"CASE WHEN {source} IS NULL THEN hash(true) ELSE hash({', '.join(('false', *parts))}) END"
    if pa.types.is_list(type_):
        if depth >= MOST_NESTED_LISTS:
            raise CannotRead(f"more than {MOST_NESTED_LISTS} lists within lists")
        variable = f"lw_{depth}"
        inner = _hash(variable, type_.value_type, depth + 1)
        return f"hash(len({source}), list_transform({source}, lambda {variable}: {inner}))"
    return f"hash({source})"


def _plain(array: Any, found: Found, rows: int) -> Any:
    """Return the plain form of a column; array: None where the file lacks it."""
    if array is None:
        return _absent(found, rows)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    match found.column.kind:
        case "struct":
            return _struct(found, rows, array)
        case "list":
            elements = _plain(array.values, found.children[0], len(array.values))
            return pa.ListArray.from_arrays(array.offsets.cast(pa.int32()), elements, mask=array.is_null())
        case "map":
            parts = [
                _plain(part, one, len(part))
                for part, one in zip((array.keys, array.items), found.children, strict=True)
            ]
            entries = pa.StructArray.from_arrays(parts, ["f0", "f1"])
            return pa.ListArray.from_arrays(array.offsets, entries, mask=array.is_null())
        case _:
            return _leaf(array, found)


def _struct(found: Found, rows: int, array: Any = None) -> Any:
    parts = [_plain(array.field(int(one.field.sql)) if one.field else None, one, rows) for one in found.children]
    mask = None if array is None else array.is_null()
    return pa.StructArray.from_arrays(parts, [f"f{index}" for index in range(len(parts))], mask=mask)


def _leaf(array: Any, found: Found) -> Any:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind, stored, types = found.column.kind, array.type, pa.types
    is_number = types.is_floating(stored) or types.is_integer(stored)
    if kind == "boolean" and types.is_boolean(stored):
        plain = array
    elif kind in _INTEGERS and types.is_integer(stored):
        # What does not fit the table's type raises.
        plain = array.cast(_arrow_type(kind)).cast(pa.int64())
    elif kind == "float" and types.is_floating(stored) and stored != pa.float64():
        plain = array.cast(pa.float32()).view(pa.int32())
    elif kind == "double" and is_number:
        plain = array.cast(pa.float64()).view(pa.int64())
    elif kind.startswith("decimal") and (types.is_decimal(stored) or types.is_integer(stored)):
        plain = array.cast(_decimal(kind)).view(pa.binary(32))
    elif kind in ("string", "binary", "uuid") or kind.startswith("fixed("):
        plain = _bytes(array, found)
    elif kind == "date" and types.is_date32(stored):
        plain = array.view(pa.int32()).cast(pa.int64())
    elif kind in _TIMES:
        plain = _time(array, found)
    else:
        raise CannotRead(f"no reader for {stored} as {kind}")
    return plain


def _decimal(kind: str) -> Any:
    """Return the widest decimal of a kind's scale: from integers, Arrow casts to no narrower one."""
    return pa.decimal256(76, int(kind.rstrip(")").rpartition(",")[2]))


def _bytes(array: Any, found: Found) -> Any:
    stored = array.type
    if pa.types.is_fixed_size_binary(stored) or pa.types.is_binary(stored) or pa.types.is_string(stored):
        return array.cast(pa.binary())
    if pa.types.is_large_binary(stored) or pa.types.is_large_string(stored):
        return array.cast(pa.large_binary()).cast(pa.binary())
    raise CannotRead(f"no reader for {stored} as {found.column.kind}")


def _time(array: Any, found: Found) -> Any:
    """Return a time as seconds and nanoseconds: no unit is too coarse, and none overflows."""
    if pa.types.is_date32(array.type) and found.column.kind.startswith("timestamp"):
        array = array.cast(pa.timestamp("s"))
    if not (pa.types.is_timestamp(array.type) or pa.types.is_time(array.type)):
        raise CannotRead(f"no reader for {array.type} as {found.column.kind}")
    per_second = _PER_SECOND[array.type.unit]
    ticks = array.view(pa.int64() if array.type.bit_width == pa.int64().bit_width else pa.int32()).cast(pa.int64())
    seconds = pc.divide(ticks, per_second)
    rest = pc.multiply(pc.subtract(ticks, pc.multiply(seconds, per_second)), _PER_SECOND["ns"] // per_second)
    return pa.StructArray.from_arrays([seconds, rest], ["f0", "f1"], mask=array.is_null())


def _absent(found: Found, rows: int) -> Any:
    """Return the default of a column, or nulls, in its plain form."""
    if found.text is None:
        return pa.nulls(rows, _plain_type(found))
    if found.column.kind == "struct":
        return _struct(found, rows)
    given = _leaf(_given(found), found)
    return pa.concat_arrays([given] * rows) if rows else given.slice(0, 0)


def _plain_type(found: Found) -> Any:
    """Return the type of the plain form, of an empty array of a type that files may have."""
    kind, children = found.column.kind, found.children
    match kind:
        case "struct":
            return pa.struct([(f"f{index}", _plain_type(child)) for index, child in enumerate(children)])
        case "list":
            return pa.list_(_plain_type(children[0]))
        case "map":
            return pa.list_(pa.struct([("f0", _plain_type(children[0])), ("f1", _plain_type(children[1]))]))
        case _:
            return _leaf(pa.array([], _arrow_type(kind)), found).type


def _arrow_type(kind: str) -> Any:
    """Return a type of Arrow that holds a kind."""
    if kind.startswith("decimal"):
        return _decimal(kind)
    if kind in _INTEGERS:
        return pa.int64() if kind.startswith("row_") else getattr(pa, kind)()
    times = {
        "time": pa.time64("us"),
        "date": pa.date32(),
        "boolean": pa.bool_(),
        "float": pa.float32(),
        "double": pa.float64(),
    }
    if kind.startswith("timestamp"):
        return pa.timestamp("ns" if kind.endswith("_ns") else "us", "UTC" if "tz" in kind else None)
    return times.get(kind) or pa.binary()


def _given(found: Found) -> Any:
    kind, text = found.column.kind, found.text or ""
    if kind == "uuid":
        return pa.array([uuid.UUID(text).bytes], pa.binary())
    if kind == "binary" or kind.startswith("fixed("):
        return pa.array([bytes.fromhex(text)], pa.binary())
    return pa.array([text], pa.string()).cast(_arrow_type(kind))
