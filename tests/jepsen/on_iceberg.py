"""The laboratory on an Iceberg table of a REST catalog: operations, their law and readers are the Iceberg stress's.

Two threads write with pyiceberg, which appends, deletes and overwrites by copies; pyiceberg and DuckDB read.
"""

import json
import threading
from collections import Counter
from pathlib import Path
from random import Random

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField

from shared.formats.iceberg.names import COMMIT_KEY
from tests.iceberg_stress.operations import OPERATION_KEY, Made, Row, Rows, is_in_parts, rows_of
from tests.iceberg_stress.readers import _DuckDb, pyiceberg_rows
from tests.iceberg_stress.writers import Ledger, Permitted, PyicebergSteps, Writer
from tests.jepsen.lab import POLICY, Lab
from tests.jepsen.rival import CATALOG, Place, Rival
from tests.jepsen.seen import SAMPLES
from tests.soak.household import SERVICES, Household
from tests.support.iceberg_rest_lake import RestLake
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack

NAME = "db.rivals"
WRITERS = 2
PAUSE_S = 0.5


def harm_between(wanted: Rows, found: Rows) -> dict[str, int]:
    """Return the rows of each kind of harm: a row with other values is changed, one of no row that is there revived."""
    missing, extra = wanted - found, found - wanted
    ids = {row.id for row in missing}
    changed = sum(count for row, count in extra.items() if row not in wanted and row.id in ids)
    doubled = sum(count for row, count in extra.items() if row in wanted)
    return {
        "lost": max(missing.total() - changed, 0),
        "revived": extra.total() - changed - doubled,
        "doubled": doubled,
        "changed": changed,
    }


class OnIceberg(Lab):
    """One table, partitioned by one of its columns."""

    def __init__(self, rival: Rival | None, redis: RedisServer, folder: Path, seed: int, lake: RestLake) -> None:
        services = {
            **SERVICES,
            "LAKEWRIGHT_POLICY": POLICY,
            "LAKEWRIGHT_CATALOGS": json.dumps({"lake": lake.options}),
            "LAKEWRIGHT_ROOTS": "catalog://lake",
            "LAKEWRIGHT_SWEEP_S": "1",
            CATALOG: json.dumps(lake.options),
        }
        stack = Stack(folder, redis, services)
        home = Household(stack, seed, rival is not None and rival.is_ours, specs=())
        super().__init__(rival, Place(home, [NAME]), seed)
        stack.tables.mkdir()
        self._lake, self._ledger, self._halt = lake, Ledger(), threading.Event()
        self._readers = {"pyiceberg": pyiceberg_rows, "DuckDB": _DuckDb().rows}
        self._made: dict[int, Made] = {}
        self._texts: Counter[str] = Counter()
        self._broken: list[str] = []
        self._samples: list[str] = []
        steps = (
            PyicebergSteps(lake.options, {NAME.partition(".")[2]: self._ledger}, Random(seed + number))
            for number in range(WRITERS)
        )
        self._writers = [Writer("pyiceberg", one, Permitted(), self._halt, pause_s=PAUSE_S) for one in steps]

    def create(self) -> None:
        self._lake.catalog.create_namespace("db")
        spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "g"))
        kinds = (LongType(), IntegerType(), IntegerType())
        fields = (
            NestedField(at, name, kind) for at, (name, kind) in enumerate(zip(Row._fields, kinds, strict=True), 1)
        )
        self._lake.catalog.create_table(NAME, Schema(*fields), partition_spec=spec, properties={"format-version": "2"})

    def start_writers(self) -> None:
        for writer in self._writers:
            writer.start()

    def end_writers(self) -> None:
        self._halt.set()
        for writer in self._writers:
            writer.join()

    def look(self) -> None:
        reader = self.random.choice(list(self._readers))
        self._compare(self._newest(), reader)

    def statements(self) -> int:
        return sum(writer.lost.total() + writer.done.total() for writer in self._writers)

    def rewrites(self) -> int:
        return self.seen.rewrites

    def judge(self) -> None:
        table = self._newest()
        for reader in self._readers:
            self._compare(table, reader)
        self._broken += [
            f"{count} snapshots of {text}" for text, count in self._texts.items() if count > 1 and not is_in_parts(text)
        ]
        # A DELETE without rows makes no snapshot.
        self._broken += [
            f"no snapshot of {text}, which was confirmed"
            for text in self._ledger.confirmed
            if text not in self._texts and '"delete"' not in text
        ]
        self.seen.broken = len(self._broken)
        self.seen.samples = [*self._samples, *self._broken][:SAMPLES]
        self.seen.aborted = sum(writer.lost.total() for writer in self._writers)
        self.seen.statements = self.statements()

    def _newest(self) -> Table:
        """Load the table, and note snapshots before anyone expires them."""
        table = self._lake.catalog.load_table(NAME)
        for one in table.metadata.snapshots:
            if one.snapshot_id in self._made:
                continue
            more = {} if one.summary is None else one.summary.additional_properties
            text, is_rewrite = (
                more.get(OPERATION_KEY),
                one.summary is not None and one.summary.operation is Operation.REPLACE,
            )
            self._made[one.snapshot_id] = Made(one.parent_snapshot_id, text)
            if text is not None:
                self._texts[text] += 1
            elif not is_rewrite and COMMIT_KEY not in more:
                self._broken.append(f"snapshot {one.snapshot_id} is explained by no operation")
            self.seen.count(is_rewrite=text is None, size=int(more.get("added-files-size", 0)))
        return table

    def _compare(self, table: Table, reader: str) -> None:
        head = table.current_snapshot()
        if head is None:
            return
        try:
            found = self._readers[reader](table, head.snapshot_id)
        except Exception as problem:  # noqa: BLE001 - a table that cannot be read is a finding
            self.seen.unreadable += 1
            self._samples.append(f"snapshot {head.snapshot_id} by {reader}: {problem}"[:300])
            return
        wanted = rows_of(self._made, head.snapshot_id)
        assert found is not None, "no writer leaves what these readers cannot read"
        if found != wanted:
            harm = harm_between(wanted, found)
            self._samples.append(f"snapshot {head.snapshot_id} by {reader}: {harm}")
            for name, rows in harm.items():
                setattr(self.seen, name, max(rows, getattr(self.seen, name)))
