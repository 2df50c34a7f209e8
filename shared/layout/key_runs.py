"""State of a table's removals of rows, by key or by age: whether rows were added since the last, and when that was."""

from dataclasses import dataclass, replace

from shared.table import Commit

DELETE = "DELETE"
"""The operation of a commit that adds no rows, although it may write files again: our own removals have it, too."""


@dataclass(frozen=True, slots=True)
class KeyRuns:
    """The newest version that added rows, the version up to which all rows were compared, and when, in ms since 1970.

    Rows are compared with others of their key, or with an age. A version is -1 where there is none.
    """

    appended_version: int = -1
    compared_version: int = -1
    compared_ms: int = 0

    @property
    def is_pending(self) -> bool:
        """True if rows were added that were not compared yet."""
        return self.appended_version > self.compared_version

    def due_ms(self, every_s: int) -> int | None:
        """Return when the next removal is due, in ms since 1970, 0: at once; None while no rows are added."""
        if not self.is_pending:
            return None
        return self.compared_ms + every_s * 1000 if self.compared_ms else 0

    def after(self, commit: Commit) -> "KeyRuns":
        """Return the state after a commit."""
        if commit.deduplicated_version is not None:
            version = min(commit.deduplicated_version, commit.version)
            return replace(self, compared_version=version, compared_ms=commit.timestamp_ms)
        if commit.data_change and commit.added and commit.operation != DELETE:
            return replace(self, appended_version=commit.version)
        return self

    def rebuilt(self, version: int, *, is_same_rule: bool) -> "KeyRuns":
        """Return the state after a rebuild at a version: whether commits since then added rows is not known."""
        return replace(self, appended_version=version, compared_version=self.compared_version if is_same_rule else -1)


NO_KEY_RUNS = KeyRuns()
"""No row was added, and none compared."""
