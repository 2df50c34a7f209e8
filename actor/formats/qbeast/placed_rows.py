"""Rows of index files with the cubes that they belong into, by the rules of their revision, which are proved first.

Zone and release of the writer's Java may bear on the rules, and no table names them. So the rows of every block are
counted by the rules; where a block has other rows than it says, its file is not touched.
"""

from collections.abc import Collection, Mapping, Sequence

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.superseded_rows import files_by_name
from actor.formats.qbeast.index_rows import IndexRows, Places, name_of
from actor.formats.qbeast.index_table import AddedTo, IndexRewrite
from actor.jvm.scala import Scala
from shared.errors import RefusedFiles
from shared.formats.qbeast.domains import count_domains, lowered_weights, without_unrecorded
from shared.formats.qbeast.placement import BlocksByFile, Rows, blocks_differ, rows_of_blocks, rows_of_cubes
from shared.refusals import RefusalReason

LAST_JAVA = 17
"""The last release of Java that the Spark of Qbeast's library runs on."""


class PlacedRows:
    """Places rows by the rules that a rewrite has; columns: names of the table's."""

    def __init__(self, scala: Scala, location: str, wanted: IndexRewrite, columns: Collection[str]) -> None:
        self._scala = scala
        self._location = location
        self._wanted = wanted
        self._columns = {name.lower() for name in columns}

    def proved(self, rows: IndexRows, inputs: Sequence[LoggedFile]) -> tuple[Rows, Places]:
        """Return the rows of the inputs by their places, and these.

        Raises RefusedFiles where a block has other rows than it says, with the first one that has.
        """
        self._require_columns()
        names = {logged.file.path: name for name, logged in files_by_name(inputs, self._location).items()}
        blocks: BlocksByFile = {names[file.path]: file.blocks for file in self._wanted.files}
        deleted = {name_of(logged) for logged in inputs if logged.file.dv_id is not None}
        places = Places(self._wanted.weights, blocks)
        found = rows.counted(places)
        problem = blocks_differ(blocks, rows_of_blocks(found), deleted)
        if problem:
            raise self._refused(f"they do not lead to the blocks that tags of files say: {problem}")
        return found, places

    def added(self, rows: IndexRows, to: AddedTo) -> tuple[Rows, Places]:
        """Return rows that are not indexed by their places, and these: what cubes weigh with them.

        Raises RefusedFiles where the rules cannot be followed.
        """
        wanted = self._wanted
        self._require_columns()

        def count(levels: Mapping[str, int]) -> dict[str, int]:
            found = rows_of_cubes(rows.counted(Places(levels, levels=True)))
            return {cube: one.rows for cube, one in found.items()}

        domains = count_domains(count, rows.total(), wanted.revision)
        weights = lowered_weights(domains, to.domains, to.ceilings, wanted.revision)
        while True:  # Each time fewer cubes are lowered.
            places = Places(weights)
            found = rows.counted(places)
            recorded = without_unrecorded(weights, wanted.weights, rows_of_cubes(found))
            if recorded == weights:
                return found, places
            weights = recorded

    def _require_columns(self) -> None:
        """Raise RefusedFiles for a column, a zone or a Java by which the rules cannot be followed."""
        missing = [one.column for one in self._wanted.coordinates if one.column.lower() not in self._columns]
        if missing:
            raise self._refused(f"the table has no column {missing[0]!r}, which its revision names")
        zones = self._scala.resolve("java.time.ZoneId").getAvailableZoneIds()
        for zone in {one.zone for one in self._wanted.coordinates if one.zone.strip("+-0123456789:")}:
            if not zones.contains(zone):
                raise self._refused(f"{zone!r} in lakewright.index-zone is no time zone that Java knows")
        spelled = [one.column for one in self._wanted.coordinates if one.is_spelled]
        release = int(self._scala.resolve("java.lang.Runtime").version().feature())
        if spelled and release > LAST_JAVA:
            raise self._refused(
                f"{spelled[0]!r} holds numbers that Java {release} spells otherwise than Java {LAST_JAVA}, under which "
                f"Qbeast's library runs: let actors run under Java {LAST_JAVA}"
            )

    def _refused(self, problem: str) -> RefusedFiles:
        number, place = self._wanted.revision.id, self._location
        return RefusedFiles(
            f"index files of {place} are not rewritten by the rules of revision {number}: {problem}",
            reason=RefusalReason.INDEX,
        )
