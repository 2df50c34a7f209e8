"""Random Delta logs in memory: what writers do, and what they may do although few of them would.

Checkpoints of one part, of several, and of version 2 with sidecars; paths in several spellings; files that are there
twice; partition values that are null, empty, or spelled in two ways; tags; deletion vectors; commits that remove, add
and add again.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from obstore.store import MemoryStore

from shared.layout.cells.tags import CELL_TAG
from shared.layout.file_selection import GENERATED_TAG
from shared.layout.partition_stats import CUBE_TAG, IDLE_COMPACTED_TAG
from tests.support.checkpoints import checkpoint

PLACE = "memory:///t"
SPELLINGS = ("{}", "{}", "{}", "./{}", "x/../{}", "a//{}", "{}%2f", "{}%2F", "/data/{}", "file:/data/{}", "{} b", "ä{}")
TYPES = {"region": "string", "at": "timestamp", "n": "integer"}
VALUES = {
    "region": ("eu", "us", "", None, "a/b"),
    "at": ("2026-01-02 03:04:05", "2026-01-02 03:04:05.000000", "2026-01-02T03:04:05Z", None, "never"),
    "n": ("1", "2", None),
}
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


class RandomLog:
    """One log; `twice` lets a checkpoint hold a file twice, `moves` lets a commit change the partition columns."""

    def __init__(self, seed: int, *, files: int = 60, twice: bool = False, moves: bool = False) -> None:
        self.dice = random.Random(seed)
        self.store = MemoryStore()
        self.files = files
        self.twice = twice
        self.moves = moves
        self.columns = self.dice.sample(sorted(TYPES), self.dice.choice((0, 1, 1, 2, 3)))
        self.has_vectors = self.dice.random() < 0.5
        self.shuffles = self.dice.random() < 0.2
        self.live: list[dict[str, Any]] = []

    def write(self) -> None:
        """Write a first commit, a checkpoint, and some commits after it."""
        self._put(f"{0:020d}.json", self._lines(self._first()))
        self.live = [self._add(f"f{number}") for number in range(self.dice.randint(0, self.files))]
        held = [*self.live, *(self._again() for _ in range(3))] if self.twice and self.live else self.live
        self.dice.shuffle(held)
        self._checkpoint(1, held)
        self._put(f"{1:020d}.json", self._lines([]))
        for version in range(2, self.dice.randint(2, 8)):
            self._put(f"{version:020d}.json", self._lines(self._changes(version)))
        if self.moves:
            columns = self.columns
            self.columns = columns[:-1]
            self._put(f"{9:020d}.json", self._lines([{"metaData": self._metadata()}]))
            self._put(f"{8:020d}.json", self._lines([]))
            for version in range(2, 8):
                if not self._exists(version):
                    self._put(f"{version:020d}.json", self._lines([]))

    def _first(self) -> list[dict[str, Any]]:
        return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": self._metadata()}]

    def _metadata(self) -> dict[str, Any]:
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in TYPES.items()]
        schema = json.dumps({"type": "struct", "fields": fields})
        return {"id": "t", "schemaString": schema, "partitionColumns": self.columns, "configuration": {}}

    def _add(self, name: str) -> dict[str, Any]:
        dice = self.dice
        tags = {tag: "1" for tag in (IDLE_COMPACTED_TAG, CUBE_TAG, CELL_TAG, "other") if dice.random() < 0.2}
        if dice.random() < 0.3:
            tags[GENERATED_TAG] = dice.choice((str(dice.randrange(10**13)), "no number", "1" * 19, ""))
        made = {
            "path": dice.choice(SPELLINGS).format(name),
            "partitionValues": {column: dice.choice(VALUES[column]) for column in self._ordered()},
            "size": dice.choice((0, 1, dice.randrange(10**4), dice.randrange(10**9), dice.randrange(2**63))),
            "modificationTime": dice.choice((0, *(dice.randrange(10**13) for _ in range(8)), -5 * 10**9)),
            "dataChange": True,
            "tags": dice.choice((None, tags, tags)),
            "stats": dice.choice((None, '{"numRecords":10}', "{}")),
        }
        return made | {"deletionVector": self._vector() if self.has_vectors and dice.random() < 0.3 else None}

    def _ordered(self) -> list[str]:
        return self.dice.sample(self.columns, len(self.columns)) if self.shuffles else self.columns

    def _vector(self) -> dict[str, Any]:
        dice = self.dice
        offset = dice.choice((None, dice.randrange(100)))
        return {"storageType": "i", "pathOrInlineDv": f"v{dice.randrange(3)}", "offset": offset, "cardinality": 3}

    def _again(self) -> dict[str, Any]:
        """Return a file that is there already, in its own spelling or in another one, in any partition."""
        known = self.dice.choice(self.live)
        other = self._add("again")
        path = self.dice.choice((known["path"], "./" + known["path"]))
        return {**other, "path": path, "deletionVector": known["deletionVector"]}

    def _changes(self, version: int) -> list[dict[str, Any]]:
        made: dict[tuple[str, str], dict[str, Any]] = {}
        for number in range(self.dice.randint(0, 6)):
            known = self._again() if self.live and self.dice.random() < 0.6 else None
            file = known or self._add(f"f{version}-{number}")
            key = (file["path"], json.dumps(file["deletionVector"]))
            if known is not None and self.dice.random() < 0.6:
                removal = {name: known[name] for name in ("path", "size", "partitionValues", "deletionVector")}
                made.setdefault(key, {"remove": {**removal, "dataChange": True, "extendedFileMetadata": True}})
            else:
                made.setdefault(key, {"add": file})
        return list(made.values())

    def _checkpoint(self, version: int, files: list[dict[str, Any]]) -> None:
        head, adds = self._first(), [{"add": file} for file in files]
        kind = self.dice.choice(("one", "parts", "sidecars", "json"))
        name = f"{version:020d}.checkpoint"
        if kind == "one":
            self._put(f"{name}.parquet", self._parquet([*head, *adds]))
            return
        cut = self.dice.randint(0, len(adds))
        halves = [adds[:cut], adds[cut:]]
        if kind == "parts":
            for number, rows in enumerate(([*head, *halves[0]], halves[1]), 1):
                self._put(f"{name}.{number:010d}.{2:010d}.parquet", self._parquet(rows))
            return
        for number, rows in enumerate(halves):
            self._put(f"_sidecars/s{number}.parquet", self._parquet(rows, with_head=False))
        own = [{"checkpointMetadata": {"version": version}}]
        own += [{"sidecar": {"path": f"s{number}.parquet", "sizeInBytes": 1}} for number in range(2)]
        extra = [{"add": self._add("inline")}] if kind == "json" else []
        self.live += [row["add"] for row in extra]
        body = self._lines([*own, *head, *extra]) if kind == "json" else self._parquet([*own, *head])
        self._put(f"{name}.{UUID}.{'json' if kind == 'json' else 'parquet'}", body)

    def _parquet(self, rows: list[dict[str, Any]], *, with_head: bool = True) -> bytes:
        return checkpoint(rows, with_head=with_head, row_group_size=self.dice.choice((3, 1000)))

    def _lines(self, actions: list[dict[str, Any]]) -> bytes:
        return "\n".join(map(json.dumps, [{"commitInfo": {"timestamp": 1}}, *actions])).encode()

    def _put(self, name: str, body: bytes) -> None:
        self.store.put(f"_delta_log/{name}", body)

    def _exists(self, version: int) -> bool:
        try:
            self.store.head(f"_delta_log/{version:020d}.json")
        except FileNotFoundError:
            return False
        return True


@dataclass(frozen=True)
class PlainFile:
    """What a log says of one live file, undecoded."""

    path: str
    dv: str | None
    size: int
    partition_values: tuple[tuple[str, str | None], ...]


def plain_replay(table: Path, version: int) -> set[PlainFile]:
    """Replay commits 0 to `version`, oldest first, without a line of the real reader.

    Paths count as the same if they are after `file:` and slashes are stripped.
    """
    live: dict[tuple[str, str | None], PlainFile] = {}
    for number in range(version + 1):
        text = (table / "_delta_log" / f"{number:020d}.json").read_text(encoding="utf-8")
        actions = [json.loads(line) for line in text.split("\n") if line]
        for action in (item["remove"] for item in actions if item.get("remove")):
            live.pop(_key(action), None)
        for action in (item["add"] for item in actions if item.get("add")):
            values = tuple(sorted((action.get("partitionValues") or {}).items()))
            live[_key(action)] = PlainFile(action["path"], _key(action)[1], action["size"], values)
    return set(live.values())


def _key(action: dict[str, Any]) -> tuple[str, str | None]:
    path = action["path"]
    if path.startswith(("/", "file:")):
        path = "/" + path.removeprefix("file:").lstrip("/")
    vector = action.get("deletionVector")
    if not vector:
        return path, None
    suffix = "" if vector.get("offset") is None else f"@{vector['offset']}"
    return path, f"{vector['storageType']}{vector['pathOrInlineDv']}{suffix}"
