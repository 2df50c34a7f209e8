"""Opens Delta tables for rewrites: a session, a snapshot, and the parts that `actor.rewrite` runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from actor.formats.delta.actions import require_origins
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.commit import DeltaTarget
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.late_rows import RowHider
from actor.formats.delta.live_files import LiveGroup, resolve_live
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.output_paths import OutputPaths, naming, new_prefix
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.preflight import check_table
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.write import DeltaWriter
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits, CopyRule
from actor.jvm.sessions import Sessions
from actor.ports import Control, RewriteOutcome, RewriteRequest
from actor.proofread.proofreader import Proofreader
from actor.rewrite.checks import check_identity
from actor.rewrite.run import ExactRewrite, RewriteSettings
from shared.layout.planner import FileGroup
from shared.paths.boundary import Boundary


@dataclass(frozen=True, slots=True)
class DeltaRewriteSettings:
    """Settings of rewrites of Delta tables. copy_limits: bounds for outputs whose row groups are copied."""

    rewrite: RewriteSettings = field(default_factory=RewriteSettings)
    boundary: Boundary = field(default_factory=Boundary)
    copy_limits: CopyLimits = DEFAULT_LIMITS


class DeltaFiles:
    """`actor.rewrite.ports.LiveGroups` for one snapshot; what was read of its partitions before spares a listing."""

    def __init__(self, log: TableLog, snapshot: Any, shape: TableShape, read_cache: ReadCache) -> None:
        self.folder = log.location
        self._log = log
        self._snapshot = snapshot
        self._shape = shape
        self._read_cache = read_cache

    def resolve(self, groups: Sequence[FileGroup]) -> list[LiveGroup]:
        """Return the groups that are live in the snapshot."""
        known = [(group, self._read_cache.live_group(self.folder, group, self._shape)) for group in groups]
        return resolve_live(self._log, self._snapshot, known, self._shape.metadata.partition_columns)

    def is_live(self, live: LiveGroup) -> bool:
        """Return whether a group is live in the newest version."""
        columns = self._shape.metadata.partition_columns
        return bool(resolve_live(self._log, self._log.snapshot(), [(live.group, live)], columns))


class DeltaRewriter:
    """Rewrites through Delta's own transactions, file by file as planned."""

    def __init__(
        self,
        scala: DeltaScala,
        sessions: Sessions,
        caches: DeltaCaches,
        settings: DeltaRewriteSettings,
        proofreader: Proofreader,
    ) -> None:
        self._scala = scala
        self._sessions = sessions
        self._caches = caches
        self._settings = settings
        self._proofreader = proofreader

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Replace the groups' files; see `ExactRewrite.run`. Raises InvalidInput, OtherTable and Unsupported, too."""
        origin, *others = require_origins(request.user_metadata)
        tags = [origin.job, *(other.job for other in others)]
        prefix = new_prefix()
        lease = self._sessions.lease(
            tag=tags[0],
            more_tags=tags[1:],
            user_metadata=request.user_metadata,
            conf=naming(prefix),
        )
        with lease as owned, self._sessions.bound(owned) as session:
            log = TableLog(self._scala, session, request.location, self._caches.snapshots)
            snapshot = log.snapshot()
            shape = log.shape(snapshot)
            check_identity(log.location, shape.metadata, request.table_uuid)
            check_table(log.location, shape.metadata, shape.protocol)
            paths = OutputPaths(self._scala, log, snapshot, shape, prefix)
            tasks = ParquetTasks(self._scala, log, paths, self._caches)
            rule = CopyRule(request.may_copy, request.full_bytes, self._settings.copy_limits)
            proofs = Proofs(self._proofreader, log, shape, request.proofread, " ".join(tags), tasks.footers)
            hider = RowHider(self._scala, log, shape, proofs, request.carry_below)
            entered = partial(self._sessions.bound, owned)
            rewrite = ExactRewrite(
                DeltaFiles(log, snapshot, shape, self._caches.reads),
                DeltaWriter(self._scala, snapshot, tasks, rule, hider, entered),
                DeltaTarget(self._scala, log, shape, origin, hider),
                self._settings.boundary,
                self._settings.rewrite,
            )
            return rewrite.run(request, control)
