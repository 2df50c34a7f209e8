"""Statements on a Delta table, written into its log by hand: they take a thousandth of an engine's time.

A vector is inline in the log, as the protocol allows for small ones.
"""

import base64
import json
import struct
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from actor.proofread.model import DeleteForm, Deletes
from actor.proofread.vectors import read_vector
from tests.row_exact.playing import Rows
from tests.support import delta_tables as tables

DAYS = 2
_OF_PYTHON = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_OF_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_SPELLED = bytes.maketrans(_OF_PYTHON, _OF_Z85)


def inline_vector(positions: Collection[int]) -> dict[str, Any]:
    """Return the descriptor of a vector of a few positions below 65,536."""
    rows = sorted(positions)
    body = struct.pack("<iqiiiHHI", 1681511377, 1, 0, 12346, 1, 0, len(rows) - 1, 16)
    body += struct.pack(f"<{len(rows)}H", *rows)
    text = base64.b85encode(body + b"\0" * (-len(body) % 4)).translate(_SPELLED).decode()
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(body), "cardinality": len(rows)}


class HandWriter:
    """Writes to a table without partitions and column mapping of the columns id, v, x and d."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def commit(self, new: Rows, gone: Collection[int] = (), *, row_group_size: int = 5) -> None:
        """Remove rows and add others in one commit, as a statement does; a file without a visible row is removed."""
        actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": 1, "operation": "MERGE"}}]
        for add in list(tables.live(self._path).values()) if gone else []:
            ids, hidden = self._ids(add), hidden_in(add, self._path)
            late = {place for place, one in enumerate(ids) if one in gone and place not in hidden}
            if late:
                actions.append({"remove": _removal(add)})
            if late and len(hidden | late) < len(ids):
                stats = json.loads(add["stats"]) | {"tightBounds": False}
                vector = inline_vector(hidden | late)
                body = add | {"deletionVector": vector, "stats": json.dumps(stats), "dataChange": True}
                actions.append({"add": body})
        if new:
            actions.append({"add": self._file(new, row_group_size)})
        file = self._path / "_delta_log" / f"{tables.newest(self._path) + 1:020}.json"
        with file.open("x") as out:
            out.write("\n".join(map(json.dumps, actions)))

    def _ids(self, add: Mapping[str, Any]) -> Sequence[int]:
        return [int(one) for one in pq.ParquetFile(self._path / add["path"]).read(["id"])["id"].to_pylist()]

    def _file(self, rows: Rows, row_group_size: int) -> dict[str, Any]:
        name, ids = f"part-{uuid.uuid4()}.parquet", sorted(rows)
        columns = {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([rows[one][0] for one in ids]),
            "x": pa.array([rows[one][1] for one in ids], pa.int32()),
            "d": pa.array([one % DAYS for one in ids], pa.int32()),
        }
        pq.write_table(pa.table(columns), self._path / name, row_group_size=row_group_size)
        stats = {"numRecords": len(ids), "minValues": {"id": ids[0]}, "maxValues": {"id": ids[-1]}}
        return {
            "path": name,
            "partitionValues": {},
            "size": (self._path / name).stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps(stats | {"nullCount": {"id": 0}}),
        }


def _removal(add: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: add[name] for name in ("path", "partitionValues", "size", "deletionVector") if add.get(name)}
    return {"partitionValues": {}, **kept, "dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True}


def hidden_in(add: Mapping[str, Any], table: Path) -> set[int]:
    """Return the positions that the vector of a live file hides."""
    if not (vector := add.get("deletionVector")):
        return set()
    return set(read_vector(Deletes(DeleteForm.DELTA_VECTOR, text=json.dumps(vector)), str(table), _read))


def visible_rows(table: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that a replay of the log finds."""
    for add in tables.live(table).values():
        gone = hidden_in(add, table)
        data = pq.ParquetFile(table / unquote(add["path"])).read().select(["id", "v", "x"]).to_pylist()
        yield from (tuple(row.values()) for place, row in enumerate(data) if place not in gone)


def _read(path: str, offset: int, size: int) -> bytes:
    return Path(path).read_bytes()[offset : offset + size]
