"""The index of a table on local disk, at each of its versions, read from its log without any library of its format."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.groups import eligible_groups
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import Progress, progress_of
from shared.formats.qbeast.revisions import decode_revisions
from shared.layout.commit_metadata import CommitMetadata, decode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.support.stack import commits_of


@dataclass(frozen=True)
class IndexVersion:
    """One version: its index, whose commit it is, and the bytes of the files that it removed and added."""

    index: QbeastIndex
    mark: CommitMetadata | None
    removed_bytes: int
    added_bytes: int

    @property
    def files(self) -> tuple[IndexFile, ...]:
        return self.index.of_revision(1)

    @property
    def progress(self) -> Progress:
        return progress_of(self.files)

    @property
    def fragmentation(self) -> float:
        blocks = [block for file in self.files for block in file.blocks]
        return len(blocks) / len({block.cube for block in blocks})

    @property
    def bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def is_done(self) -> bool:
        return not eligible_groups(self.files, self.index.revisions.by_id[1].space)


def index_versions(path: Path) -> Iterator[IndexVersion]:
    """Yield the versions of a table that have revision 1, from its commits."""
    configuration: dict[str, str] = {}
    live: dict[str, DataFile] = {}
    for version, actions in enumerate(commits_of(path)):
        removed = added = 0
        mark = None
        for action in actions:
            if "metaData" in action:
                configuration = action["metaData"]["configuration"]
            elif "commitInfo" in action:
                mark = decode(action["commitInfo"].get("userMetadata"))
            elif "remove" in action:
                removed += live.pop(action["remove"]["path"]).size_bytes
            elif "add" in action:
                live[action["add"]["path"]] = _file(action["add"])
                added += action["add"]["size"]
        if "qbeast.revision.1" in configuration:
            index = QbeastIndex(version, decode_revisions(configuration), live.values())
            yield IndexVersion(index, mark, removed, added)


def newest_index(path: Path) -> IndexVersion:
    return list(index_versions(path))[-1]


def _file(add: dict[str, Any]) -> DataFile:
    rows = json.loads(add.get("stats") or "{}").get("numRecords")
    return DataFile(add["path"], add["size"], WHOLE_TABLE, rows=rows, tags=add.get("tags") or {})
