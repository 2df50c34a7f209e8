"""Abilities of Lakewright's engines for the tables of one format, as decider and actor share them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shared.index.status import IndexQuery, IndexStatus
from shared.table import Snapshot


def _none_s(_: Mapping[str, str]) -> int:
    """Return the retention of a format that has none of its own."""
    return 0


def _no_index(snapshot: Snapshot, query: IndexQuery) -> None:
    """Return None: tables of this format have no index."""


@dataclass(frozen=True, slots=True)
class FormatSupport:
    """Abilities of engines for tables of a format; nothing else is planned.

    title: the format's name for people. sql_paths: the name that SQL has before the path of a table without a catalog;
    empty: SQL cannot name such a table. job_kinds: kinds of jobs that its engine runs; empty: all. orders_rows: a
    rewrite can sort rows or keep their order. lacks: what its tables have none of, by the kind of the job on it.
    has_entries: each name of a table in catalogs has its own metadata, and so its own history.
    commit_step: by how much versions grow with a commit; where they are times in ms, with one a minute.
    names_cluster_columns: a property names the columns that its tables are clustered by.
    instead: for each kind that it does not run, what an owner can do. own_retention_s: how long a table with these
    properties keeps removed files by itself, in seconds; raises InvalidInput where that cannot be read. index_status:
    returns the status of a table's index on several columns, None for a table without one; raises Corrupt where the
    index cannot be read, InvalidInput for a query that does not fit.
    """

    title: str = ""
    sql_paths: str = ""
    job_kinds: tuple[str, ...] = ()
    orders_rows: bool = True
    lacks: Mapping[str, str] = field(default_factory=dict, hash=False)
    has_entries: bool = False
    commit_step: int = 1
    names_cluster_columns: bool = False
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)
    own_retention_s: Callable[[Mapping[str, str]], int] = _none_s
    index_status: Callable[[Snapshot, IndexQuery], IndexStatus | None] = _no_index

    def runs(self, kind: str) -> bool:
        """Return whether its engine runs jobs of this kind."""
        return not self.job_kinds or kind in self.job_kinds
