"""Which rounds there are: all that the laboratory does, and the few of them that every test run can afford.

Tables in `DEEP` go through every operation of every writer, a long chain, and writers that our rewrite overtakes. The
others, which differ in one feature or one kind of partition, go through the operations that rewrite files.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.interop.cases import CASES
from tests.interop.engines.protocol import Reader
from tests.interop.laboratory import Round
from tests.interop.operations import CHAIN, SINGLE, Append, Delete, Merge, Optimize, Overwrite, Restore, Update
from tests.interop.table_case import Case

SPARK = "Spark"
WORKER = ", rewritten by a whole actor"
MEANWHILE = ", rows updated meanwhile"
DEEP = (
    "every type",
    "plain",
    "a place with blanks",
    "partitions of strings",
    "partitions of few alphabets",
    "partitions of timestamps",
    "deletion vectors, partitioned",
    "column mapping by name",
    "row tracking",
    "change data feed",
    "timestamp without zone",
    "v2 checkpoint, deletion vectors, row tracking and in-commit timestamps",
)
_BY_WORKER = (
    ("partitions of few alphabets", "deltalake"),
    ("every type", "deltalake"),
    ("deletion vectors, partitioned", "spark"),
    ("column mapping by name", "spark"),
)
_MEANWHILE = (("deletion vectors and column mapping, none yet", "spark"),)
_NEWEST = "deltalake, newest safe"
_REWRITING = (Append(), Delete(), Merge(), Overwrite())
_OVERTAKEN = (Append(), Delete(), Update(), Merge(), Overwrite(), Optimize())


@dataclass(frozen=True, slots=True)
class Planned:
    """One round: the table, who makes it, and what is tried on it."""

    case: Case
    creator: str
    round: Round
    rewritten: str = ""
    """How it is rewritten other than by the engine alone, with which the creator's name ends."""

    @property
    def name(self) -> str:
        """How the round is called on the command line and in tests."""
        return f"{self.case.name} by {self.creator}"


def whole() -> Iterator[Planned]:
    """All rounds of `make interop`."""
    for case in CASES.values():
        newest = (_NEWEST,) if "deltalake" in case.creators else ()
        for creator in (*case.creators, *newest):
            yield Planned(case, creator, _deep() if case.name in DEEP and creator != _NEWEST else _shallow(case))

    for rewritten, names in ((WORKER, _BY_WORKER), (MEANWHILE, _MEANWHILE)):
        for name, creator in names:
            yield Planned(CASES[name], creator + rewritten, _shallow(CASES[name]), rewritten)


def _deep() -> Round:
    """Every operation and the chain; Spark, the slowest reader by far, reads after its own operations only."""
    return Round((*SINGLE, CHAIN), stale=_OVERTAKEN, filtering=_is_quick, reading=_is_quick)


def _shallow(case: Case) -> Round:
    small = case.batch_rows <= 5
    return Round(
        _REWRITING,
        filtering=lambda reader: small or _is_quick(reader),
        reading=_is_quick,
    )


def _is_quick(reader: Reader) -> bool:
    return reader.name != SPARK


def small() -> Iterator[Planned]:
    """The rounds that CI runs: of values in paths, and of several features at once."""
    by_deltalake = Round(
        (Delete(), Merge(), Overwrite(), Restore()),
        stale=(Merge(),),
        writers=lambda writer: writer.name == "deltalake",
        filtering=_is_quick,
        reading=_is_quick,
    )
    by_spark = Round((Delete(), Overwrite()), filtering=_is_quick, reading=_is_quick)
    yield Planned(CASES["partitions of few alphabets"], "deltalake", by_deltalake)
    yield Planned(CASES["deletion vectors and column mapping"], "spark", by_spark)
