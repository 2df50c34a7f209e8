"""Our rewrite, by the real engine: every cell with several files, or with a deletion vector, becomes one file."""

import itertools
from pathlib import Path

from actor.delta.engine import DeltaEngine
from actor.ports import GroupStatus, RewriteRequest
from shared.errors import LakewrightError
from shared.partitions import WHOLE_TABLE, cell_key
from shared.planner import FileGroup, Mode
from shared.table import CellKey
from tests.interop.table_log import TableLog
from tests.support.delta_lab import mark
from tests.support.steering import Steering


class RewriteRefusedError(Exception):
    """We do not rewrite this table; the text says why."""


class OurRewrite:
    """Rewrites whole tables by one engine."""

    def __init__(self, engine: DeltaEngine) -> None:
        self._engine = engine
        self._jobs = itertools.count()

    def __call__(self, location: Path) -> int:
        """Rewrite a table and return how many cells were; raises RewriteRefusedError with our own reason."""
        uri = location.as_uri()
        try:
            groups = [group for cell in self._cells(location, uri) for group in self._group(uri, cell)]
            if not groups:
                return 0
            request = RewriteRequest(uri, tuple(groups), mark(f"lab-{next(self._jobs)}", 1))
            outcome = self._engine.rewrite(request, Steering())
        except LakewrightError as error:
            raise RewriteRefusedError(str(error)) from error
        landed = [end for end in outcome.groups if end.status is GroupStatus.LANDED]
        assert len(landed) == len(groups), outcome
        return len(landed)

    def _cells(self, location: Path, uri: str) -> list[CellKey]:
        columns = self._engine.read_cell(uri, WHOLE_TABLE).metadata.partition_columns
        keys = {cell_key(columns, add["partitionValues"]) for add in TableLog.read(location).live()}
        return sorted(keys)

    def _group(self, uri: str, cell: CellKey) -> list[FileGroup]:
        files = self._engine.read_cell(uri, cell).files
        worth = len(files) > 1 or any(file.dv_id for file in files)
        return [FileGroup(cell, files, Mode.MINOR)] if worth else []
