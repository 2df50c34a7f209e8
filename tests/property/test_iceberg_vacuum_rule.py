"""What a vacuum of an Iceberg table deletes, against a replay: never a needed file, and in the end all others."""

from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from shared.formats.iceberg.names import MAIN
from shared.jobs.options import VacuumOptions
from shared.policy.policy import Policy
from tests.support.examples import examples
from tests.support.iceberg_store import HOUR_MS, IcebergStore, run_in_memory
from tests.support.local_vacuum import ON

NUMBER = st.integers(0, 9)
STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3), NUMBER),
    st.tuples(st.just("overwrite"), NUMBER, st.integers(1, 4)),
    st.tuples(st.sampled_from(["again", "stage", "statistics", "commit_to_branch", "refuse"]), NUMBER, NUMBER),
    st.tuples(st.sampled_from(["drop", "rollback", "forget"]), NUMBER, NUMBER),
    st.tuples(st.sampled_from(["tag", "branch"]), NUMBER, st.sampled_from([0, 1, 30])),
    st.tuples(st.just("keep"), st.integers(1, 4), NUMBER),
    st.tuples(st.just("wait"), st.integers(1, 100), NUMBER),
    st.tuples(st.just("clean"), st.sampled_from([0, 1, 24, 100]), st.integers(0, 40)),
)


Life = list[tuple[str, int, int]]
LIVES = st.lists(STEPS, min_size=1, max_size=20)


class Killed(Exception):  # noqa: N818 - no error of the product
    """The run is over in the middle."""


class World:
    """A table and what happens to it; after each vacuum nothing that is needed may be missing."""

    def __init__(self) -> None:
        self.store = IcebergStore()
        self.described: dict[int, str] = {}
        self.chosen = 0
        self.vacuums = 0
        self.store.commit()

    def play(self, kind: str, first: int, second: int) -> None:
        known = sorted(self.store.snapshots)
        self.chosen = known[first % len(known)]
        getattr(self, kind)(first, second)
        self.store.now_ms += 1

    @property
    def live(self) -> list[str]:
        main = self.store.head_of(MAIN)
        return [] if main is None else sorted(self.store.made[main].live)

    @property
    def others(self) -> list[str]:
        return sorted(self.store.refs - {MAIN})

    def append(self, first: int, _: int) -> None:
        self.store.commit(first)

    def overwrite(self, first: int, second: int) -> None:
        place = first % max(1, len(self.live))
        self.store.commit(1, self.live[place : place + second])

    def again(self, _first: int, _second: int) -> None:
        live = self.live
        self.store.commit(0, again=[file for file in self.store.made[self.chosen].live if file not in live][:2])

    def stage(self, _first: int, _second: int) -> None:
        self.store.commit(1, branch=None)

    def tag(self, first: int, second: int) -> None:
        limits = {"max_ref_age_ms": second * HOUR_MS} if second else {}
        self.store.tag(f"tag-{first}", self.chosen, **limits)

    def branch(self, first: int, second: int) -> None:
        hours = second * HOUR_MS
        limits = {"max_ref_age_ms": hours, "min_snapshots_to_keep": 2, "max_snapshot_age_ms": hours} if second else {}
        self.store.tag(f"branch-{first}", self.chosen, "branch", **limits)

    def commit_to_branch(self, first: int, _: int) -> None:
        branches = [name for name in self.others if name.startswith("branch")]
        self.store.commit(1, branch=branches[first % len(branches)] if branches else MAIN)

    def drop(self, first: int, _: int) -> None:
        if self.others:
            self.store.drop(self.others[first % len(self.others)])

    def rollback(self, _first: int, _second: int) -> None:
        self.store.rollback(self.chosen)

    def forget(self, _first: int, _second: int) -> None:
        self.store.forget({self.chosen} - {one["snapshot-id"] for one in self.store.raw["refs"].values()})

    def statistics(self, _first: int, _second: int) -> None:
        self.described[self.chosen] = self.store.statistics(self.chosen)

    def keep(self, first: int, _: int) -> None:
        self.store.configure(history__expire__min_snapshots_to_keep=str(first))

    def refuse(self, _first: int, _second: int) -> None:
        self.store.write("data/{}.parquet")

    def wait(self, first: int, _: int) -> None:
        self.store.now_ms += first * HOUR_MS

    def clean(self, first: int, second: int) -> None:
        self.vacuum(first, with_orphans=first % 2 == 0, killed_at=second or None)

    def vacuum(self, retain_h: int, *, with_orphans: bool, killed_at: int | None = None) -> None:
        """Vacuum by force, and be killed at a call of the table; then check all that is needed."""
        calls = 0

        def die(_call: str) -> None:
            nonlocal calls
            calls += 1
            if killed_at is not None and calls > killed_at:
                raise Killed

        store, self.vacuums = self.store, self.vacuums + 1
        cutoff_ms = store.now_ms - retain_h * HOUR_MS
        readable = {one for one in store.named_since(cutoff_ms) if not store.missing({one})}
        kept = {name for name in store.refs if not name.startswith(("tag", "branch"))}
        options = VacuumOptions(with_orphans, force=True, retain_s=retain_h * 3_600)
        store.before = die
        try:
            run_in_memory(store, options, policy=replace(ON, min_retain_s=0))
        except Killed:
            event("killed in the middle")
        store.before = lambda _call: None
        assert not store.missing(store.snapshots), "every snapshot that the metadata have can be read"
        assert not store.missing(readable), "what was the newest of a branch inside the retention can be read"
        assert kept <= store.refs
        assert {path for one, path in self.described.items() if one in store.snapshots} <= store.files.keys()


@settings(max_examples=examples(0.6))
@given(steps=LIVES)
def test_no_file_that_a_snapshot_needs_is_deleted_and_in_the_end_all_others_are(steps: Life) -> None:
    live_and_clean(steps)


@pytest.mark.long("iceberg")
@settings(max_examples=2_000)
@given(steps=LIVES)
def test_the_same_of_very_many_tables(steps: Life) -> None:
    live_and_clean(steps)


def live_and_clean(steps: Life) -> None:
    """Let a table live through these steps, then vacuum it until only what its branches and tags need is left."""
    world = World()
    store = world.store
    for step in steps:
        world.play(*step)
    event(f"vacuums in between: {min(world.vacuums, 3)}")
    store.configure(history__expire__min_snapshots_to_keep="1")
    for _ in range(2):  # A branch or tag that expires was still in force when the first of them began.
        store.now_ms += 1_000 * HOUR_MS
        world.vacuum(0, with_orphans=True)
    heads = {one["snapshot-id"] for one in store.raw["refs"].values()}
    least = {name: one for name, one in store.raw["refs"].items() if one.get("min-snapshots-to-keep")}
    assert heads <= store.snapshots
    if not least:
        assert store.snapshots == heads
    left = {path for path in store.files if not path.endswith(".metadata.json")}
    described = {path for one, path in world.described.items() if one in store.snapshots}
    assert left == store.needed(store.snapshots) | described


def test_a_policy_that_keeps_longer_keeps_more() -> None:
    store = IcebergStore()
    first = store.commit()
    store.now_ms += 24 * HOUR_MS
    store.commit(1, sorted(store.made[first].live))
    store.now_ms += 200 * HOUR_MS
    run_in_memory(store, policy=Policy(vacuum=True, min_retain_s=300 * 3_600))
    assert not store.deleted
    run_in_memory(store, policy=Policy(vacuum=True, min_retain_s=0))
    assert set(store.deleted) > store.made[first].live
