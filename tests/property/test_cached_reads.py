"""What an actor concludes from single commits is what a listing of the snapshot shows."""

from hypothesis import given
from hypothesis import strategies as st

from actor.formats.delta.live_files import find_live, still_live
from shared.table import PartitionColumn
from tests.support.fake_delta import A, FakeTable, brought, listed, live_group, whole
from tests.support.fake_delta_table import add, remove, vector

COLUMNS = (PartitionColumn("p", "p", "string"),)
changes = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "vector"]), st.sampled_from(["x", "y", "z"]), st.sampled_from(["a", "b"])
    ),
    max_size=3,
    unique_by=lambda change: change[1],
)
PATHS = ["a", "b", "c", "d"]
touches = st.lists(st.tuples(st.sampled_from(["add", "remove", "vector"]), st.sampled_from([*PATHS, "e"])), max_size=3)


@given(st.lists(changes, max_size=6), st.booleans())
def test_what_is_brought_up_equals_what_a_listing_gives(
    commits: list[list[tuple[str, str, str]]], is_whole: bool
) -> None:
    """The law of the memory, file by file and word by word, for a whole table and for one partition."""
    table = FakeTable()
    table.commit(add("x"), add("y", p="b"))
    seen = whole(table) if is_whole else listed(table, A)
    partitions = {"x": "a", "y": "b"}
    for number, changed in enumerate(commits):
        actions = []
        for kind, path, p in changed:
            live = table.at(table.version).allFiles().bodies
            actions += [remove(b["path"], deletionVector=b.get("deletionVector")) for b in live if b["path"] == path]
            if kind != "remove":
                partitions.setdefault(path, p)
                more = {"deletionVector": vector(1, f"v{number}")} if kind == "vector" else {}
                actions.append(add(path, p=partitions[path], modificationTime=number, **more))
        table.commit(*actions)
    now = brought(table, seen)
    fresh = whole(table) if is_whole else listed(table, A)
    assert now is not None
    assert dict(now.files) == dict(fresh.files)
    assert (now.partition, now.version, now.digest) == (fresh.partition, fresh.version, fresh.digest)


@given(st.lists(touches, max_size=5), st.sampled_from([("a",), ("a", "b"), ("c", "d", "a")]))
def test_commits_never_call_a_group_live_that_the_snapshot_does_not_have(
    commits: list[list[tuple[str, str]]], paths: tuple[str, ...]
) -> None:
    """The law: what is judged live from single commits is in the snapshot, with the same words about each file."""
    table = FakeTable()
    table.commit(*map(add, PATHS))
    group = live_group(table, *paths)
    for number, touched in enumerate(commits):
        made = {
            "add": lambda path: add(path, modificationTime=number + 1),  # noqa: B023 - called within this round
            "remove": remove,
            "vector": lambda path: add(path, deletionVector=vector(1, f"v{number}")),  # noqa: B023
        }
        table.commit(*(made[kind](path) for kind, path in touched))
    log = table.log()
    judged = still_live(log, [group], at_version=table.version)
    found = find_live(log, log.snapshot(), [group.group], COLUMNS)
    if judged[group.group]:
        assert [live.inputs for live in found] == [group.inputs]
    elif not any(commits):
        raise AssertionError("nothing was touched, and the group is called stale")
