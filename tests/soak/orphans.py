"""What lies in a table's folder and belongs to nothing: outputs of those that were killed, halves from a full disk."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOG_ENDINGS = (".json", ".parquet")
LOG_NAMES = ("_last_checkpoint", "_last_vacuum_info")


@dataclass(frozen=True, slots=True)
class Orphans:
    """Paths below one table.

    data: data files that no log ever named. staged: commits and checkpoints that never came to their name. hidden:
    Hadoop's checksums of files that others have removed, which no VACUUM reads.
    """

    data: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def counts(self) -> Mapping[str, int]:
        """Return how many of each there are."""
        return {"data": len(self.data), "staged": len(self.staged), "hidden": len(self.hidden)}


def orphans_of(table: Path, known: set[str]) -> Orphans:
    """Return the orphans of a table; `known`: every path that its log ever named."""
    data, staged, hidden = [], [], []
    for path in sorted(one for one in table.rglob("*") if one.is_file()):
        name = str(path.relative_to(table))
        if path.name.startswith(".") and path.name.endswith(".crc"):
            if not path.with_name(path.name[1:].removesuffix(".crc")).exists():
                hidden.append(name)
        elif path.parent.name == "_delta_log":
            if path.name not in LOG_NAMES and not _is_log(path.name):
                staged.append(name)
        elif name not in known:
            data.append(name)
    return Orphans(tuple(data), tuple(staged), tuple(hidden))


def _is_log(name: str) -> bool:
    return name[:20].isdecimal() and name.endswith((*LOG_ENDINGS, ".crc")) and "tmp" not in name
