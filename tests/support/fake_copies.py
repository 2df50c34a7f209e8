"""The JVM's side of copying row groups without a JVM, and a proofreader that opens none of its files."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from actor.formats.delta.proofreading import Proofs
from actor.proofread.model import Proof, Reading
from actor.proofread.proofreader import Proofreader
from tests.support.fake_delta import FakeScala, FakeTable

FOOTER = {
    "obstacle": "",
    "schema": "s",
    "top_level": [],
    "created_by": "writer 1.0",
    "keys": [],
    "key_values": "digest",
    "codecs": ["snappy"],
    "rows": 10,
    "row_groups": 1,
    "data_bytes": 90,
    "dictionary_bytes": 0,
}
"""Of each input, as `ParquetFooter.java` describes it."""


class FakeCopies(FakeScala):
    """Stands for the Java classes that copy, or encode by column.

    footers: of the inputs in their order. end: what the task returns beside its file, whose `name` it makes up; an
    exception is raised instead. tasks: what each was given. summaries_read: paths of each call that read footers.
    handed_over: footers that a task was given.
    """

    def __init__(self, table: FakeTable, footers: Sequence[dict[str, Any]], end: dict[str, Any] | Exception) -> None:
        super().__init__(table)
        self.footers, self.end = list(footers), end
        self.tasks: list[tuple[Any, ...]] = []
        self.summaries_read: list[list[str]] = []
        self.handed_over: list[Any] = []
        self.group.copied, self.group.merged = self._copied, lambda *given: self._task(*given[:-1])

    def _footers(self, _conf: Any, paths: str, *_: Any) -> Any:
        self.summaries_read.append(json.loads(paths))
        return SimpleNamespace(text=lambda: json.dumps({"files": self.footers, "schemas": {}}))

    def _copied(self, *given: Any) -> str:
        self.handed_over += [given[-1]] if given[-1] is not None else []
        return self._task(*given[:-1])

    def _task(self, _context: Any, *given: Any) -> str:
        self.tasks.append(given)
        return json.dumps(self._run())

    def _run(self) -> dict[str, Any]:
        if isinstance(self.end, Exception):
            raise self.end
        if "obstacle" in self.end:
            return {"attempt": 0, **self.end}
        _conf, _paths, _sizes, folder, prefix, suffix, _setting = self.tasks[-1]
        name = f"{prefix}part{suffix}"
        self._table.disk[f"{folder}/{name}".removeprefix(f"{self.delta_log_root}/")] = 100
        return {"attempt": 0, "name": name, "size": 100, "rows": 20, "row_groups": 2, "modification": 7, **self.end}

    @property
    def delta_log_root(self) -> str:
        return str(self.replayed_log.open("", None).dataPath().toString())


def _unread(*_given: Any, **_told: Any) -> Proof:
    return Proof(Reading.NONE, unverified_because="a table in memory")


UNREADING = cast("Proofreader", SimpleNamespace(check=_unread, cancel=lambda _tag: None))
"""A proofreader that compares nothing, and says so."""

UNREAD = cast("Proofs", SimpleNamespace(check=_unread))
"""The same for the groups of one rewrite."""
