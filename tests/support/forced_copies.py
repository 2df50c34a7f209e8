"""An engine that copies row groups wherever that is exact, however small they are, and that counts how groups end.

With LAKEWRIGHT_TEST_ROW_GROUP_COPY=forced the contract tests and the laboratory rewrite with it: both make tables of a
few rows, whose groups would be encoded otherwise.
"""

import os
from collections import Counter

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.formats.parquet.copy_rules import CopyLimits
from actor.ports import Control, GroupStatus, RewriteOutcome, RewriteRequest
from actor.proofread.proofreader import Proofreader

VARIABLE = "LAKEWRIGHT_TEST_ROW_GROUP_COPY"
COPIED = "copied"
FORCED_LIMITS = CopyLimits(
    min_row_group_bytes=0, min_column_chunk_bytes=0, min_row_group_bytes_with_vectors=0, max_dictionary_share=1
)
NEVER_COPIES = CopyLimits(max_column_chunks=0)
"""What could be copied is encoded column by column."""


def is_forced() -> bool:
    """Whether the environment wants copies wherever they are exact."""
    return os.environ.get(VARIABLE) == "forced"


class CountingEngine(DeltaEngine):
    """Notes how each group was written that landed: copied, or why it was encoded.

    forced: copies wherever that is exact, or never, so that columns are merged; None: as the environment wants it.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        forced: bool | CopyLimits | None = None,
        proofreader: Proofreader | None = None,
    ) -> None:
        wanted = is_forced() if forced is None else forced
        limits = wanted if isinstance(wanted, CopyLimits) else FORCED_LIMITS if wanted else CopyLimits()
        super().__init__(spark, EngineSettings(copy_limits=limits, proofreader=proofreader))
        self.ways: Counter[str] = Counter()

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        outcome = super().rewrite(request, control)
        landed = [group for group in outcome.groups if group.status is GroupStatus.COMMITTED]
        self.ways.update(COPIED if group.is_copied else group.encoded_because for group in landed)
        return outcome
