"""What a vacuum may delete, against a replay of every version: never a needed file, and nothing less than the rest."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from shared.formats.delta_orphans import MIN_ORPHAN_AGE_MS
from tests.support.vacuum_world import HOUR_MS, SPELLINGS, VacuumWorld

STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3), st.sampled_from(SPELLINGS)),
    st.tuples(st.just("rewrite"), st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.just("delete"), st.integers(0, 5), st.integers(0, 2 * HOUR_MS)),
    st.tuples(st.just("vector"), st.integers(0, 5), st.integers(0, 2 * HOUR_MS)),
    st.tuples(st.just("restore"), st.integers(0, 10), st.just(0)),
    st.tuples(st.just("refused"), st.sampled_from(SPELLINGS), st.just(0)),
    st.tuples(st.just("change"), st.integers(1, 2), st.just(0)),
    st.tuples(st.just("wait"), st.integers(0, 60), st.just(0)),
)


def play(world: VacuumWorld, step: tuple) -> None:
    kind, first, second = step
    live = list(world.versions[-1].values()) if world.versions else []
    if kind == "append":
        world.commit([world.write(second) for _ in range(first)])
    elif kind == "rewrite" and live:
        chosen = live[first % len(live) :][: second + 1]
        world.commit([world.write("plain")], chosen)
    elif kind == "delete" and live:
        world.commit((), [live[first % len(live)]], lag_ms=second)
    elif kind == "vector" and live:
        old = live[first % len(live)]
        new = world.with_vector(old)
        world.commit([new], [old], lag_ms=second)
    elif kind == "restore" and world.versions:
        number = max(world.oldest, len(world.versions) - 1 - first)
        target = world.versions[number]
        # Delta's RESTORE refuses a version whose files are gone.
        if world.files_of(number) <= world.store.keys():
            now = world.versions[-1]
            back = [one for path, one in target.items() if now.get(path) != one]
            gone = [one for path, one in now.items() if target.get(path) != one]
            world.commit(back, gone)
    elif kind == "refused":
        world.write(first)
    elif kind == "change":
        world.commit(changes=first)
    elif kind == "wait":
        world.now_ms += first * HOUR_MS
    world.now_ms += 1


@settings(max_examples=300)
@given(
    steps=st.lists(STEPS, min_size=1, max_size=25),
    retain_h=st.sampled_from([0, 1, 24, 48, 168]),
    cleanup_at=st.none() | st.integers(0, 24),
)
def test_no_file_that_a_version_inside_the_retention_needs_is_deleted_and_all_others_are(
    steps: list[tuple], retain_h: int, cleanup_at: int | None
) -> None:
    world = VacuumWorld()
    world.commit([world.write("plain")])
    world.now_ms += 1
    for number, step in enumerate(steps):
        play(world, step)
        if number == cleanup_at:
            world.clean_log()
    retain_ms = retain_h * HOUR_MS
    deleted, needed = world.deletable(retain_ms), world.truly_needed(retain_ms)
    assert not deleted & needed
    young_ms = min(world.now_ms - retain_ms, world.now_ms - MIN_ORPHAN_AGE_MS)
    uncommitted = {name for name, at_ms in world.store.items() if at_ms >= young_ms}
    event(f"deletes something: {bool(deleted)}; log was cleaned: {world.first_commit > 0}")
    if world.first_commit == 0:
        left = world.store.keys() - deleted - needed
        # Only what is too young to be told from the files of a writer that has not committed yet is left.
        assert left <= uncommitted
        named = {name for commit in world.read() for one in commit.removed for name, _ in one.own}
        assert not left & named - {
            name for commit in world.read() if commit.time_ms >= world.now_ms - retain_ms for name in _names(commit)
        }


def _names(commit) -> set[str]:
    return {name for one in (*commit.added, *commit.removed, *commit.changes) for name in one.kept}


@settings(max_examples=100)
@given(
    steps=st.lists(STEPS, min_size=1, max_size=20), more=st.lists(STEPS, max_size=6), retain_h=st.sampled_from([0, 24])
)
def test_after_a_vacuum_every_version_inside_the_retention_reads_and_a_second_one_finds_nothing(
    steps: list[tuple], more: list[tuple], retain_h: int
) -> None:
    world = VacuumWorld()
    world.commit([world.write("plain")])
    for step in steps:
        play(world, step)
    retain_ms = retain_h * HOUR_MS
    for name in world.deletable(retain_ms):
        del world.store[name]
    assert world.deletable(retain_ms) == set()
    for step in more:
        play(world, step)
    for version in world.readable(retain_ms):
        assert not world.files_of(version) - world.store.keys()
