"""Rows of a partition for which a newer row of the same key exists, found by Spark from the key columns alone.

Of the rows of one key the one with the greatest sequence is the newest; of equal ones a marked row, then one of the
file whose name comes last, then the first in that file: so the answer does not depend on the order of reading. A row
without a key or a sequence is never superseded and supersedes none. If the newest row of a key is marked as deleted, it
goes with the others.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import unquote

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.proofreading import Proofs
from actor.jvm.scala import Scala
from actor.proofread.model import Proof
from shared.errors import Unsupported
from shared.paths.data_paths import file_name
from shared.policy.key_rule import KeyRule
from shared.policy.row_order import SortColumn

FILE, PART, ROW = "__lakewright_file", "__lakewright_part", "__lakewright_row"
"""Columns by which rows can be put back into the order of their files."""

REMOVED = "__lakewright_removed"
"""Column that is true in the rows to remove."""

_RANK, _ROWS, _NEWEST = "__lakewright_rank", "__lakewright_rows", "__lakewright_newest"
_KNOWN, _PLACE = "__lakewright_known", "__lakewright_place"
_WINNER, _IS_MARKED = "__lakewright_winner", "__lakewright_is_marked"

NAME = f"CASE WHEN instr({FILE}, '%') = 0 THEN {FILE} ELSE url_decode(replace({FILE}, '+', '%2B')) END"
"""The name of a file, which Spark shows escaped."""

READ = (
    f"_metadata.file_name AS {FILE}",
    f"_metadata.file_block_start AS {PART}",
    f"monotonically_increasing_id() AS {ROW}",  # Grows along the rows that one task reads.
)


class SupersededRows(AbstractContextManager["SupersededRows"]):
    """The superseded rows of one partition; what Spark keeps of them is released at the end of a `with` block."""

    condition: str = "superseded()"

    def __init__(self, scala: Scala, frame: Any, rule: KeyRule) -> None:
        """`frame` reads all live files of the partition."""
        self.rule = rule
        self._scala = scala
        self._functions = scala.resolve("org.apache.spark.sql.functions")
        keys, sequence = (tuple(map(_quoted, names)) for names in (rule.keys, rule.sequence))
        marked = "false" if rule.delete_marker is None else f"coalesce({_quoted(rule.delete_marker)}, false)"
        ranks = [f"'s{place}', {name}" for place, name in enumerate(sequence)]
        self._keys = [f"__lakewright_key_{place}" for place, _ in enumerate(keys)]
        self._known = " AND ".join(f"{name} IS NOT NULL" for name in (*keys, *sequence))
        self._compared = (
            *(f"{name} AS {alias}" for name, alias in zip(keys, self._keys, strict=True)),
            f"named_struct({', '.join(ranks)}, 'marked', {marked}) AS {_RANK}",
        )
        read = frame.filter(self._known).selectExpr(scala.seq([*self._compared, READ[0]]))
        each = read.groupBy(FILE, scala.seq(self._keys)).agg(
            self._functions.expr(f"max({_RANK}) AS {_RANK}"), scala.seq([self._functions.expr(f"count(1) AS {_ROWS}")])
        )
        by_name = f"PARTITION BY {', '.join(self._keys)} ORDER BY {_RANK} DESC, {NAME} DESC"
        first = f"row_number() OVER ({by_name})"
        self._ranked = each.selectExpr(scala.seq(["*", f"{first} = 1 AS {_NEWEST}"])).persist()

    def __exit__(self, *_: object) -> None:
        """Release what Spark keeps."""
        self._ranked.unpersist()

    def counts(self) -> Mapping[str, int]:
        """Count the superseded rows of each file that has any, by the name of the file, which Spark shows escaped."""
        kept = f"CASE WHEN {_NEWEST} AND NOT {_RANK}.marked THEN 1 ELSE 0 END"
        counted = self._functions.expr(f"sum({_ROWS} - {kept}) AS {_ROWS}")
        rows = self._ranked.groupBy(FILE, self._scala.seq()).agg(counted, self._scala.seq()).filter(f"{_ROWS} > 0")
        return {unquote(found[FILE]): int(found[_ROWS]) for found in self._scala.rows(rows)}

    def mark(self, frame: Any) -> Any:
        """Add the columns `FILE`, `PART`, `ROW` and `REMOVED` to a frame that reads some of the files."""
        seq = self._scala.seq
        located = frame.selectExpr(seq(["*", *READ, *self._compared, f"{self._known} AS {_KNOWN}"]))
        order = f"PARTITION BY {FILE}, {', '.join(self._keys)} ORDER BY {_RANK} DESC, {PART}, {ROW}"
        placed = located.selectExpr(seq(["*", f"row_number() OVER ({order}) AS {_PLACE}"]))
        winners = self._ranked.filter(_NEWEST).selectExpr(
            seq([*self._keys, f"{FILE} AS {_WINNER}", f"{_RANK}.marked AS {_IS_MARKED}"])
        )
        removed = f"{_KNOWN} AND ({FILE} != {_WINNER} OR {_PLACE} > 1 OR {_IS_MARKED}) AS {REMOVED}"
        joined = placed.join(winners, seq(self._keys), "left_outer").selectExpr(seq(["*", removed]))
        return joined.drop(seq([*self._keys, _RANK, _KNOWN, _PLACE, _WINNER, _IS_MARKED]))

    def compare(
        self, proofs: Proofs, live: LiveGroup, replaced: Sequence[LoggedFile], outputs: Sequence[LoggedFile]
    ) -> Proof:
        """Compare what was written with the rows that stay, by the second reader's own search."""
        return proofs.check_removal(live, replaced, outputs, self.rule)


def files_by_name(files: Sequence[LoggedFile], location: str) -> dict[str, LoggedFile]:
    """Return the files by their names without folders; raises Unsupported if two have the same name."""
    found = {file_name(logged.file.path).rpartition("/")[2]: logged for logged in files}
    if len(found) < len(files):
        raise Unsupported(
            f"two of {len(files)} files of a partition at {location} have the same name in different folders, so "
            "their rows cannot be distinguished",
            field="path",
        )
    return found


def _quoted(name: str) -> str:
    return str(SortColumn(name)).removesuffix(" ASC")
