"""A table in memory behind the ports of `actor.rewrite`: what the core does is tested without a format, Spark or Java.

`others` plays the other writers just before a commit; `fails` makes commits fail before or after they were made.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count

from actor.rewrite.model import Attempt, Blame, NotAsked, Staged, Verdict
from shared.errors import Conflict, LakewrightError, PermanentError, RefusedFiles, RetryableError
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.refusals import RefusalReason
from shared.table import DataFile

LOCATION = "s3://bucket/t"


class Fault(Exception):  # noqa: N818 - no error of ours
    """A failure of the library: its verdict after a commit, its blame while writing, why its files are refused."""

    def __init__(
        self,
        verdict: Verdict = Verdict.UNKNOWN,
        blame: Blame = Blame.ALL,
        text: str = "the store",
        refused: RefusalReason | None = None,
    ) -> None:
        super().__init__(text)
        self.verdict = verdict
        self.blame = blame
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Failing:
    """How a commit fails: before it was made, or after; not `asked`: before the table was asked at all."""

    error: Exception
    made: bool = False
    asked: bool = True


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A file in the terms of this format."""

    file: DataFile


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A group that was live."""

    group: FileGroup
    inputs: tuple[MemoryFile, ...]
    delete_files: tuple[str, ...] = ()


class MemoryStaged(Staged[MemoryGroup, MemoryFile]):
    """A group that was written."""


class MemoryFailures:
    """What faults mean."""

    def verdict(self, error: BaseException) -> Verdict:
        if isinstance(error, NotAsked):
            return Verdict.REFUSED
        return error.verdict if isinstance(error, Fault) else Verdict.UNKNOWN

    def blame(self, error: BaseException) -> Blame:
        return error.blame if isinstance(error, Fault) else Blame.ALL

    def text(self, error: BaseException) -> str:
        return f"{type(error).__name__}: {error}"

    def refused(self, error: BaseException, location: str) -> LakewrightError:
        found = self.verdict(error)
        kind = PermanentError if found is Verdict.REFUSED else None
        return kind(f"{location}: {error}") if kind else Conflict(f"{location}: {error}", kind=found)

    def translate(self, error: BaseException, doing: str, *, so: str = "") -> LakewrightError:
        if isinstance(error, Fault) and error.refused:
            return RefusedFiles(f"{doing}: {error}; {so}", reason=error.refused)
        return RetryableError(f"{doing}: {error}; {so}")


@dataclass
class MemoryTable:
    """Implements all three ports; `deleted` are files that were deleted, `calls` what was asked before commits.

    make_good: writes what the first group needs besides in an attempt, and returns its path.
    """

    live: dict[str, DataFile] = field(default_factory=dict)
    disk: dict[str, int] = field(default_factory=dict)
    versions: list[frozenset[str]] = field(default_factory=list)
    others: Callable[[], object] = lambda: None
    fails: list[Failing] = field(default_factory=list)
    fails_writing: dict[str, Exception] = field(default_factory=dict)
    fits: Exception | None = None
    unreadable: Exception | None = None
    undone: Exception | None = None
    undeletable: Exception | None = None
    knows_its_version: bool = True
    lost_attempts: bool = False
    delete_files: tuple[str, ...] = ()
    deleted: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    attempts: int = 0
    make_good: Callable[[], str] | None = None
    begun: list[str] = field(default_factory=list)
    entered: Callable[[], AbstractContextManager[object]] = nullcontext
    names: count = field(default_factory=count)  # type: ignore[type-arg]
    folder: str = LOCATION
    location: str = LOCATION
    mark: str = "job j, token 1"
    max_output_age_s: float = 100.0
    failures: MemoryFailures = field(default_factory=MemoryFailures)

    def add(self, *paths: str) -> None:
        self.live |= {path: DataFile(path, 100, WHOLE_TABLE, rows=10) for path in paths}
        self.versions.append(frozenset(paths))

    def remove(self, *paths: str) -> None:
        for path in paths:
            del self.live[path]
        self.versions.append(frozenset())

    def group(self, *paths: str) -> FileGroup:
        return FileGroup(WHOLE_TABLE, tuple(self.live[path] for path in paths), RewriteMode.FULL)

    def resolve(self, groups: Sequence[FileGroup]) -> list[MemoryGroup]:
        found = [one for one in groups if all(file.path in self.live for file in one.files)]
        return [MemoryGroup(one, tuple(map(MemoryFile, one.files)), self.delete_files) for one in found]

    def is_live(self, live: MemoryGroup) -> bool:
        return all(file.path in self.live for file in live.group.files)

    def write(self, live: MemoryGroup) -> MemoryStaged:
        first = live.group.files[0].path
        self.begun.append(first)
        path = f"out-{next(self.names)}"
        if first in self.fails_writing:
            self.disk[f"part-of-{first}"] = 1
            raise self.fails_writing[first]
        self.disk[path] = 50
        return MemoryStaged(live, (MemoryFile(DataFile(path, 50, WHOLE_TABLE, rows=10)),), 10)

    def leftovers(self, kept: Collection[str]) -> Sequence[str]:
        return [path for path in self.disk if path not in kept]

    def may_have_lost_attempts(self) -> bool:
        return self.lost_attempts

    def begin(self, offered: tuple[MemoryStaged, ...]) -> Attempt[MemoryStaged]:
        self.calls.append("begin")
        if self.fits is not None:
            raise self.fits
        groups = tuple(one for one in offered if self.is_live(one.live))
        if self.make_good is None:
            gone = {one.live.group: "input_gone" for one in offered if one not in groups}
            return Attempt(groups, len(self.versions), set_aside=gone)
        path = self.make_good()
        self.disk[path] = 50
        more = (*groups[0].outputs, MemoryFile(DataFile(path, 50, WHOLE_TABLE, rows=0)))
        return Attempt(groups, len(self.versions), {groups[0].live.group: replace(groups[0], outputs=more)})

    def sizes(self, paths: Collection[str]) -> Mapping[str, int | None]:
        self.calls.append("sizes")
        return {path: self.disk.get(path) for path in paths}

    def commit(self, attempt: Attempt[MemoryStaged]) -> int | None:
        self.calls.append("commit")
        self.attempts += 1
        self.others()
        failing = self.fails.pop(0) if self.fails else None
        if failing is not None and not failing.made:
            if not failing.asked:
                raise NotAsked("not asked") from failing.error
            raise failing.error
        if failing is None and not all(self.is_live(one.live) for one in attempt.groups):
            raise Fault(Verdict.TAKEN, text="an input is gone")
        for one in attempt.committed:
            for file in one.live.inputs:
                self.live.pop(file.file.path)
            self.live |= {output.file.path: output.file for output in one.outputs}
        self.versions.append(frozenset(path for one in attempt.committed for path in one.paths))
        if failing is not None:
            raise failing.error
        return len(self.versions) - 1 if self.knows_its_version else None

    def find(self, attempt: Attempt[MemoryStaged]) -> int | None:
        self.calls.append("find")
        if self.unreadable is not None:
            raise self.unreadable
        if self.undone is not None:
            raise self.undone
        ours = frozenset(path for one in attempt.committed for path in one.paths)
        since = range(int(attempt.base), len(self.versions))
        return next((version for version in since if self.versions[version] == ours), None)

    def follows(self, version: int) -> int:
        return version - 1

    def delete(self, paths: Collection[str]) -> None:
        if self.undeletable is not None:
            raise self.undeletable
        self.deleted += paths
        for path in paths:
            self.disk.pop(path, None)

    def orphans(self) -> set[str]:
        """Files that no version names."""
        return set(self.disk) - {path for version in self.versions for path in version}
