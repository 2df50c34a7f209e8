"""Jobs that a table with a Qbeast index permits, by metadata alone: no rewrite that would leave its rows anywhere."""

from shared.formats.qbeast.names import LAST_REVISION
from shared.jobs.payload import CHECKPOINT, INDEX, VACUUM
from shared.refusals import Refusal, RefusalCode
from shared.table import TableMetadata

_ALLOWED = (INDEX, VACUUM, CHECKPOINT)


def index_refusal(metadata: TableMetadata) -> Refusal:
    """Return why no exact rewrite may touch a table with an index, and which jobs may."""
    if metadata.partition_columns:
        return Refusal(
            RefusalCode.QBEAST,
            "partitions",
            "the table has a Qbeast index and is partitioned, which Qbeast's library rejects",
            "Write it unpartitioned",
        )
    return Refusal(
        RefusalCode.QBEAST,
        LAST_REVISION,
        f"this is a Qbeast table ({LAST_REVISION} is set): merging its files would destroy its index",
        f"Set lakewright.index=on, and Lakewright optimizes the index; or unset {LAST_REVISION} if the index is no "
        "longer used",
        _ALLOWED,
    )
