"""What a table consists of: the sizes of its live files and of their row groups, and a picture of them as text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable

from shared.policy.policy import KIB, MIB

BAR_WIDTH = 40
BUCKETS_PER_STEP = 4
"""Each line of a picture covers sizes up to four times its least."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Bytes of the live files, and of their row groups (compressed pages), ascending."""

    files: tuple[int, ...]
    row_groups: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of the table."""
        return sum(self.files)

    @property
    def mean_row_group_bytes(self) -> int:
        """Mean size of a row group."""
        return sum(self.row_groups) // len(self.row_groups)

    @property
    def half_in_bytes(self) -> int:
        """Size of the row groups that hold the middle byte: half of the bytes are in smaller ones."""
        seen = 0
        for size in self.row_groups:
            seen += size
            if 2 * seen >= sum(self.row_groups):
                return size
        raise ValueError("a table without row groups has no middle byte")


def layout_of(table: Path) -> Layout:
    """Read the footers of a table's live files."""
    paths = DeltaTable(str(table)).file_uris()
    files, groups = [], []
    for path in (Path(path.removeprefix("file://")) for path in paths):
        footer = pq.read_metadata(path)
        files.append(path.stat().st_size)
        for row_group in map(footer.row_group, range(footer.num_row_groups)):
            chunks = map(row_group.column, range(row_group.num_columns))
            groups.append(sum(chunk.total_compressed_size for chunk in chunks))
    return Layout(tuple(sorted(files)), tuple(sorted(groups)))


def drawn(title: str, sizes: Sequence[int]) -> str:
    """Return a histogram: how many of these sizes there are, as a bar, and their share of all bytes."""
    lines = [f"{title}: {len(sizes):,}, {sum(sizes) / MIB:.1f} MiB"]
    buckets = list(_buckets(sizes))
    most = max(len(inside) for _, inside in buckets)
    for start, inside in buckets:
        bar = "#" * max(bool(inside), round(BAR_WIDTH * len(inside) / most))
        share = f"{100 * sum(inside) / sum(sizes):5.1f}% of bytes" if inside else ""
        lines.append(f"  {size_text(start):>8s} up {len(inside):>7,} |{bar:<{BAR_WIDTH}s}| {share}".rstrip())
    return "\n".join(lines)


def _buckets(sizes: Sequence[int]) -> Iterable[tuple[int, list[int]]]:
    start = 1
    while start * BUCKETS_PER_STEP <= min(sizes):
        start *= BUCKETS_PER_STEP
    while start <= max(sizes):
        yield start, [size for size in sizes if start <= size < start * BUCKETS_PER_STEP]
        start *= BUCKETS_PER_STEP


def size_text(size: int) -> str:
    """Return a size for people."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"
