"""Operation metrics of our commits carry Delta's own names, so that DESCRIBE HISTORY shows a rewrite as OPTIMIZE."""

import json
from collections.abc import Mapping, Sequence

from actor.formats.delta.actions import LoggedFile


def operation_metrics(inputs: Sequence[LoggedFile], outputs: Sequence[LoggedFile]) -> Mapping[str, int]:
    """Return the metrics that Delta lists for OPTIMIZE; sizes are bytes, zero where nothing was written."""
    sizes = sorted(logged.file.size_bytes for logged in outputs) or [0]
    vectors = [vector for logged in inputs if (vector := json.loads(logged.json).get("deletionVector"))]
    return {
        "numAddedFiles": len(outputs),
        "numAddedBytes": sum(logged.file.size_bytes for logged in outputs),
        "numRemovedFiles": len(inputs),
        "numRemovedBytes": sum(logged.file.size_bytes for logged in inputs),
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
        "numDeletionVectorsRemoved": len(vectors),
        "numDeletionVectorRowsRemoved": sum(int(vector["cardinality"]) for vector in vectors),
        "numDeletionVectorBytesRemoved": sum(int(vector["sizeInBytes"]) for vector in vectors),
    }
