"""Where the time of a rewrite goes: the calls that take it are timed from outside, and the code stays as it is."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from actor.formats.delta import snapshot
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.log import TableLog
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.write import DeltaWriter

_TIMED: tuple[tuple[Any, str, str], ...] = (
    (TableLog, "snapshot", "list the log and build the snapshot"),
    (TableLog, "files", "read the partition's files from the snapshot's state (a Spark job)"),
    (snapshot, "decode_adds", "decode them"),
    (TableLog, "transaction", "open a transaction"),
    (TableLog, "touched_paths", "see whether others touched the inputs"),
    (FooterReader, "read", "read the footers of the inputs (sum over two threads)"),
    (ParquetTasks, "run", "copy the row groups, or merge columns (sum over two threads)"),
    (ParquetTasks, "output", "merge the statistics"),
    (DeltaWriter, "_by_spark", "encode the outputs by Spark (sum over two threads)"),
    (DeltaWriter, "_check_rows", "compare row counts"),
    (TableLog, "commit", "commit"),
)


class Phases:
    """Milliseconds by phase, of everything that ran inside `measured`."""

    def __init__(self) -> None:
        self.ms: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Time the calls; one at a time in a process."""
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in _TIMED]
        for owner, name, phase in _TIMED:
            setattr(owner, name, self._timed(getattr(owner, name), phase))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def split_commit(self, table: Path, version: int, ended_s: float) -> None:
        """Tell apart what came before the commit's file appeared and what came after, by the file's time."""
        visible_s = (table / "_delta_log" / f"{version:020d}.json").stat().st_mtime
        after_ms = min(self.ms["commit"], max(0.0, 1e3 * (ended_s - visible_s)))
        self.ms["after the commit: checksum, checkpoint, next snapshot"] = after_ms
        self.ms["commit"] -= after_ms

    def _timed(self, call: Callable[..., Any], phase: str) -> Callable[..., Any]:
        @wraps(call)
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                with self._lock:
                    self.ms[phase] += 1e3 * (time.perf_counter() - began)

        return timed
