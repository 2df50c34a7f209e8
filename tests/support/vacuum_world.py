"""A Delta table in memory with its store, so that what a vacuum may delete is found by replaying every version."""

from base64 import b85encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID

from shared.formats.delta_references import reference
from shared.formats.delta_vacuum import LoggedCommit, Tombstone, decode_commit, in_order
from shared.formats.delta_vacuum_plan import VacuumInputs, plan_vacuum
from shared.paths.stored_file import StoredFile

ROOT = "s3://bucket/lake/t"
HOUR_MS = 3_600_000
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
SPELLINGS = ("plain", "encoded", "absolute", "odd")


@dataclass(frozen=True)
class Live:
    """One live file: the path in the log, its name in the store, and its vector, if it has one."""

    path: str
    name: str
    vector: UUID | None = None


@dataclass
class VacuumWorld:
    """A table whose clock only goes forward; `store` maps names to time of change."""

    now_ms: int = 1_000 * HOUR_MS
    store: dict[str, int] = field(default_factory=dict)
    versions: list[dict[str, Live]] = field(default_factory=list)
    commits: list[tuple[int, list[dict[str, Any]]]] = field(default_factory=list)
    oldest: int = 0
    first_commit: int = 0
    made: int = 0

    def write(self, spelling: str) -> Live:
        """Write a data file that no commit names yet."""
        self.made += 1
        folder = "dt=a b/" if spelling in ("encoded", "odd") else ""
        name = f"{folder}part-{self.made:05d}.parquet"
        self.store[name] = self.now_ms
        paths = {
            "plain": name,
            "encoded": quote(name),
            "absolute": f"s3a://bucket/lake/t/{name}",
            "odd": f"./{quote(name)}",
        }
        return Live(paths[spelling], name)

    def commit(
        self, added: Sequence[Live] = (), removed: Sequence[Live] = (), *, lag_ms: int = 0, changes: int = 0
    ) -> None:
        """Commit; `lag_ms`: how long ago the writer stamped the removals; `changes`: change files."""
        actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": self.now_ms - lag_ms}}]
        actions += [{"remove": _action(one, deletionTimestamp=self.now_ms - lag_ms)} for one in removed]
        actions += [{"add": _action(one)} for one in added]
        for _ in range(changes):
            self.made += 1
            name = f"_change_data/cdc-{self.made:05d}.parquet"
            self.store[name] = self.now_ms
            actions.append({"cdc": {"path": name, "size": 1}})
        live = dict(self.versions[-1]) if self.versions else {}
        for one in removed:
            live.pop(one.path, None)
        live |= {one.path: one for one in added}
        self.versions.append(live)
        self.commits.append((self.now_ms, actions))

    def with_vector(self, one: Live) -> Live:
        """Write a new deletion vector for a file."""
        self.made += 1
        vector = UUID(int=(self.made << 64) + 7)
        self.store[vector_name(vector)] = self.now_ms
        return Live(one.path, one.name, vector)

    def clean_log(self) -> None:
        """Delete all commits below a checkpoint of the newest version."""
        self.oldest, self.first_commit = len(self.versions) - 1, len(self.versions)

    # What a vacuum reads.

    def read(self) -> tuple[LoggedCommit, ...]:
        """All commits that the log still has."""
        kept = list(enumerate(self.commits))[self.first_commit :]
        return in_order(decode_commit(actions, version, at_ms, ROOT) for version, (at_ms, actions) in reversed(kept))

    def tombstones(self) -> list[Tombstone]:
        """Those of the newest snapshot."""
        found: dict[tuple[str, UUID | None], Tombstone] = {}
        for _, actions in self.commits:
            for action in actions:
                body = action.get("remove") or action.get("add")
                if body is None:
                    continue
                key = (body["path"], str(body.get("deletionVector")))
                found.pop(key, None)
                if "remove" in action:
                    found[key] = Tombstone(reference(body, ROOT), body["deletionTimestamp"])
        return list(found.values())

    def live(self) -> list[Any]:
        return [reference(_action(one), ROOT) for one in self.versions[-1].values()]

    def deletable(self, retain_ms: int, *, commits: Sequence[LoggedCommit] | None = None) -> set[str]:
        """Names that the rule lets a vacuum delete now, by name and as orphans."""
        read = tuple(self.read() if commits is None else commits)
        listing = [StoredFile(name, 1, at_ms) for name, at_ms in self.store.items()]
        inputs = VacuumInputs(len(self.versions) - 1, ("dt",), self.live(), self.tombstones(), read, listing)
        plan = plan_vacuum(inputs, retain_ms, self.now_ms)
        return (plan.removed.keys() & self.store.keys()) | {one.name for one in plan.orphans}

    # What the truth is.

    def readable(self, retain_ms: int) -> Iterator[int]:
        """Versions that can be rebuilt, and were the newest at some moment inside the retention."""
        cutoff_ms = self.now_ms - retain_ms
        for version in range(self.oldest, len(self.versions)):
            is_newest = version == len(self.versions) - 1
            if is_newest or self.commits[version + 1][0] >= cutoff_ms:
                yield version

    def files_of(self, version: int) -> set[str]:
        """Names of all files that reading a version needs."""
        live = self.versions[version].values()
        return {one.name for one in live} | {vector_name(one.vector) for one in live if one.vector}

    def truly_needed(self, retain_ms: int) -> set[str]:
        """By replay: the union of the files of all versions that must work, and the change files of their commits."""
        cutoff_ms = self.now_ms - retain_ms
        changes = {
            action["cdc"]["path"]
            for at_ms, actions in self.commits
            if at_ms >= cutoff_ms
            for action in actions
            if "cdc" in action
        }
        return changes.union(*(self.files_of(version) for version in self.readable(retain_ms)))


def vector_name(vector: UUID) -> str:
    return f"deletion_vector_{vector}.bin"


def encode_vector(vector: UUID) -> str:
    """A UUID as Delta writes it into `pathOrInlineDv`."""
    return b85encode(vector.bytes).decode().translate(str.maketrans(_B85, _Z85))


def _action(one: Live, **more: Any) -> dict[str, Any]:
    action: dict[str, Any] = {"path": one.path, "size": 1, **more}
    if one.vector is not None:
        place = encode_vector(one.vector)
        action["deletionVector"] = {"storageType": "u", "pathOrInlineDv": place, "cardinality": 1, "sizeInBytes": 9}
    return action
