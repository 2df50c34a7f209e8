"""The ten tables of a soak: what their partitions are called, and which of them Spark may write.

deltalake 1.5.1 removes a file under another path than the one it was added under wherever that path, once decoded,
is not the text it was: with blanks and with letters beyond ASCII. Such paths are made by Spark, which names folders
after partition values. So beside deltalake Spark writes only where its paths are plain: in the partitions named in
`spark`, or anywhere in a table with delta.randomizeFilePrefixes. `--spark-writes-everywhere` lifts this; together with
`--without-lakewright` it shows that rows double without us, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.soak.values import Kind, Value, days, micros
from tests.support.time_limits import scaled

Partition = tuple[Value, ...]

COLUMNS: Mapping[str, Kind] = {"id": Kind.LONG, "value": Kind.STRING, "at": Kind.TIMESTAMP}
"""Columns of every table, besides those that it is partitioned by and those that are added later."""

ADDED_COLUMNS = ("extra_0", "extra_1", "extra_2")
"""Columns of type string that ADD COLUMN brings, in this order."""

RETENTION_S = scaled(180.0)
"""What VACUUM leaves: longer than any actor is paused, and than any snapshot here is in use."""

RETENTION = {"delta.deletedFileRetentionDuration": f"interval {RETENTION_S:.0f} seconds"}

SIGNS = ("100%", "a:b", "a/b", "a=b", "a%20b", "x#y?z", "it's", 'say "x"', "back\\slash", "plus+&")

PROOFREAD = {"lakewright.proofread": "always"}
"""Each group is compared with its inputs by rows, however it was written."""

RANDOM_PREFIXES = {"delta.randomizeFilePrefixes": "true"}


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table.

    `spark`: the partitions that Spark may write; `deltalake`: whether deltalake can write it at all; `folder`: where it
    lies, if not in one of its name.
    """

    name: str
    by: Mapping[str, Kind] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ((),)
    spark: tuple[Partition, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    deltalake: bool = True
    folder: str = ""

    @property
    def place(self) -> str:
        """Name of its folder."""
        return self.folder or self.name

    @property
    def configuration(self) -> dict[str, str]:
        """Properties that the table is created with."""
        return {**RETENTION, **PROOFREAD, **self.properties}

    @property
    def columns(self) -> dict[str, Kind]:
        """Columns that the table is created with."""
        return {**COLUMNS, **self.by}

    def kind(self, column: str) -> Kind:
        """Type of a column; added ones are strings."""
        return self.columns.get(column, Kind.STRING)

    def values(self, partition: Partition) -> dict[str, Value]:
        """Values by column; null where the protocol reads the spelling as null."""
        return {name: None if value == "" else value for name, value in zip(self.by, partition, strict=True)}


def _strings(name: str, *values: str | None, folder: str = "") -> TableSpec:
    partitions = tuple((value,) for value in (*values, "plain"))
    return TableSpec(name, {"p": Kind.STRING}, partitions, spark=(("plain",),), folder=folder)


def _stamps() -> TableSpec:
    texts = (
        "2024-01-01 00:00:00",
        "2024-01-01 00:00:00.123456",
        "1969-12-31 23:59:59.999999",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59",
    )
    return TableSpec("stamps", {"ts": Kind.TIMESTAMP}, tuple((micros(text),) for text in texts))


def _dates() -> TableSpec:
    partitions = (*((days(text),) for text in ("2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31")), (None,))
    return TableSpec("dates", {"day": Kind.DATE}, partitions, spark=partitions)


def _two() -> TableSpec:
    places = ("Zürich", "a b", "日本 語", "plain")
    partitions = tuple((place, days(day)) for place in places for day in ("2024-01-01", "2024-01-02"))
    by = {"place": Kind.STRING, "day": Kind.DATE}
    return TableSpec("two", by, partitions, spark=partitions, properties=RANDOM_PREFIXES)


def _mapped() -> TableSpec:
    partitions = tuple((value,) for value in ("Zürich", "a b", "100%", None, "plain"))
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    return TableSpec("mapped", {"a b": Kind.STRING}, partitions, partitions, properties, deltalake=False)


TABLES: Sequence[TableSpec] = (
    # No folder is named like `a%20b`: deltalake 1.5.1 searches for its log in `a b`, and finds it there.
    _strings("blanks", "a b", "two  blanks", " leading", "trailing ", folder="a b"),
    _strings("signs", *SIGNS, folder="100%"),
    _strings("umlauts", "Zürich", "Łódź", "Αθήνα", "Ærø", folder="Zürich"),
    _strings("east", "日本 語", "中文", "한국어", "🦆 x"),
    _strings("nulls", None, "", "null", "None", "__none__"),
    _stamps(),
    _dates(),
    TableSpec("edges", spark=((),)),
    _two(),
    _mapped(),
)

EDGES = tuple(
    micros(text)
    for text in (
        "0001-01-01 00:00:00",
        "1582-10-04 23:59:59.999999",
        "1582-10-15 00:00:00",
        "1677-09-21 00:12:43",
        "1815-03-30 00:00:00",
        "1970-01-01 00:00:00",
        "2262-04-11 23:47:17",
        "9999-12-31 23:59:59.999999",
    )
)
"""Where calendars and counts of nanoseconds break; every table has them in `at`."""


def spec_of(name: str) -> TableSpec:
    """Return the table of this name."""
    return next(table for table in TABLES if table.name == name)
