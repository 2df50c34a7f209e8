"""What a table must hold at each version: its writers' operations replayed in the order of its commits.

Rows are kept with all their versions, because an operation works on the snapshot that it has read, not on the one it
is committed after: a row that was appended in between survives a DELETE whose predicate it matches. That is what
snapshot isolation allows; what else came in between the engine must have refused. Ids are never used twice.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from tests.soak.log import Commit
from tests.soak.operations import Action, Operation
from tests.soak.values import Row


@dataclass(slots=True)
class _History:
    """The life of one id: from each version on, the row or None."""

    versions: list[int] = field(default_factory=list)
    rows: list[Row | None] = field(default_factory=list)

    def at(self, version: int) -> Row | None:
        index = bisect_right(self.versions, version)
        return self.rows[index - 1] if index else None

    def put(self, version: int, row: Row | None) -> None:
        self.versions.append(version)
        self.rows.append(row)


@dataclass(slots=True)
class Model:
    """The rows of one table by version. `problems`: what no sequence of the writers' operations explains.

    `is_rewrite`: whether a commit is a compactor's, which changes no rows.
    """

    table: str
    is_rewrite: Callable[[Commit], bool] = attrgetter("ours")
    version: int = -1
    problems: list[str] = field(default_factory=list)
    found: dict[str, int] = field(default_factory=dict)
    _ids: dict[int, _History] = field(default_factory=dict)

    def replay(self, commits: Iterable[Commit], operations: Mapping[str, Operation]) -> None:
        """Apply the next commits; rewrites change nothing."""
        for commit in commits:
            self.version = commit.version
            if self.is_rewrite(commit) or commit.version == 0:
                continue
            operation = operations.get(commit.nonce)
            if operation is None or operation.table != self.table:
                self._problem(commit, f"made by no one we know ({commit.engine}, nonce {commit.nonce!r})")
                continue
            if commit.nonce in self.found and operation.action is not Action.VACUUM:  # VACUUM commits twice.
                self._problem(commit, f"{commit.nonce} is there already as version {self.found[commit.nonce]}")
                continue
            self.found[commit.nonce] = commit.version
            read = commit.info.get("readVersion", operation.read)
            self._apply(commit, operation, int(read))

    def rows_at(self, version: int) -> dict[int, Row]:
        """Return the rows by id at a version that was replayed."""
        alive = ((key, history.at(version)) for key, history in self._ids.items())
        return {key: row for key, row in alive if row is not None}

    def effect_is_empty(self, operation: Operation, accepted: int) -> bool:
        """Whether an operation that made no commit had nothing to do on some snapshot from its own to `accepted`."""
        if operation.action in (Action.OPTIMIZE, Action.VACUUM, Action.ADD_COLUMN):
            return True
        if operation.action is Action.RESTORE:
            return False
        if operation.action in (Action.APPEND, Action.OVERWRITE, Action.MERGE):
            return not operation.rows
        histories = self._ids.values()
        return any(
            not any((row := history.at(version)) and operation.where.matches(row) for history in histories)
            for version in range(operation.read, accepted + 1)
        )

    def _apply(self, commit: Commit, operation: Operation, read: int) -> None:
        matched: dict[int, Row] = {}
        if operation.action in (Action.DELETE, Action.UPDATE, Action.OVERWRITE, Action.MERGE):
            seen = ((key, history.at(read)) for key, history in self._ids.items())
            matched = {key: row for key, row in seen if row is not None and operation.where.matches(row)}
        match operation.action:
            case Action.APPEND:
                self._insert(commit, operation.rows)
            case Action.DELETE:
                self._put(commit, dict.fromkeys(matched))
            case Action.UPDATE:
                self._put(commit, {key: {**row, **operation.assign} for key, row in matched.items()})
            case Action.OVERWRITE:
                self._put(commit, dict.fromkeys(matched))
                self._insert(commit, operation.rows)
            case Action.MERGE:
                updating = set(operation.where.ids or ())
                by_id = {int(row["id"] or 0): row for row in operation.rows}
                # A column that the source does not have keeps its value.
                self._put(commit, {key: {**row, **by_id[key]} for key, row in matched.items()})
                self._insert(commit, [row for key, row in by_id.items() if key not in updating])
            case Action.RESTORE:
                past, present = self.rows_at(operation.target), self.rows_at(read)
                self._put(commit, {key: past.get(key) for key in past.keys() | present.keys()})

    def _put(self, commit: Commit, rows: Mapping[int, Row | None]) -> None:
        for key, row in rows.items():
            self._ids[key].put(commit.version, row)

    def _insert(self, commit: Commit, rows: Iterable[Row]) -> None:
        for row in rows:
            key = int(row["id"] or 0)
            if key in self._ids:
                self._problem(commit, f"id {key} was used before")
            self._ids.setdefault(key, _History()).put(commit.version, row)

    def _problem(self, commit: Commit, text: str) -> None:
        self.problems.append(f"{self.table} version {commit.version}: {text}")
