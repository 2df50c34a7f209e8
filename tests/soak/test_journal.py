"""A journal holds an operation before it is tried; the balloon fills the disk and gives all of it back."""

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.soak.disk import wrapper_of_namespace
from tests.soak.journal import Journal, Journals
from tests.soak.log import Commit
from tests.soak.model import Model
from tests.soak.operations import Action, Chooser, Operation, View, Where
from tests.soak.tables import TABLES
from tests.soak.values import Row
from tests.support.time_limits import scaled


def test_a_line_that_was_cut_off_is_left_until_it_is_whole(tmp_path: Path) -> None:
    journal, journals = Journal(tmp_path / "a.journal"), Journals(tmp_path)
    journal.refused("one", "x")
    journal.close()
    whole = (tmp_path / "a.journal").read_bytes()
    (tmp_path / "a.journal").write_bytes(whole + whole[:10])
    journals.refresh()
    assert set(journals.answers) == {"one"}
    (tmp_path / "a.journal").write_bytes(whole + whole.replace(b"one", b"two"))
    journals.refresh()
    assert set(journals.answers) == {"one", "two"}


def test_whatever_is_chosen_survives_the_journal_and_never_uses_an_id_twice(tmp_path: Path) -> None:
    chooser, seen, actions = Chooser(Random(1), "w", 10**9), set(), set()
    journal, journals = Journal(tmp_path / "a.journal"), Journals(tmp_path)
    chosen = {}
    for _ in range(2_000):
        spec, action = chooser.table(TABLES), chooser.action()
        ids = {tuple(spec.values(one).values()): range(20) for one in spec.partitions}
        operation = chooser.choose(spec, action, View(5, list(spec.columns), ids, [3, 4]), spec.partitions)
        if operation is None:
            continue
        actions.add(operation.action)
        chosen[operation.nonce] = operation
        journal.intend(operation)
        fresh = [row["id"] for row in operation.rows if row["id"] not in (operation.where.ids or ())]
        assert not seen & set(fresh)
        seen |= set(fresh)
    journal.close()
    journals.refresh()
    assert journals.operations == chosen
    assert actions == set(Action) - {Action.CREATE}


def test_the_same_seed_chooses_the_same() -> None:
    def some(seed: int) -> list[Operation | None]:
        chooser = Chooser(Random(seed), "w", 0)
        view = View(5, list(TABLES[0].columns), {(value,): range(20) for (value,) in TABLES[0].partitions})
        return [chooser.choose(TABLES[0], chooser.action(), view, TABLES[0].partitions) for _ in range(50)]

    assert some(1) == some(1)
    assert some(1) != some(2)


SCRIPT = """
import os, sys
from pathlib import Path
from tests.soak.disk import INSIDE, Balloon, mount_small

os.environ[INSIDE] = "1"
folder = Path(sys.argv[1])
assert mount_small(folder) == ""
(folder / "others").write_bytes(bytes(5_000_000))
balloon = Balloon(folder)

def is_full():
    try:
        (folder / "probe").write_bytes(bytes(1_000))
    except OSError:
        return True
    finally:
        (folder / "probe").unlink(missing_ok=True)
    return False

assert not is_full()
balloon.fill()
assert is_full()
(folder / "others").unlink()
assert not is_full()
balloon.fill()
assert is_full()
balloon.release()
assert not is_full()
print("all of it")
"""


def test_the_balloon_takes_everything_and_gives_it_back(tmp_path: Path) -> None:
    wrapper, refused = wrapper_of_namespace()
    if refused:
        pytest.skip(refused)
    command = [*wrapper, sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(60), check=False)
    assert done.stdout.strip() == "all of it", done.stderr
    assert list(tmp_path.iterdir()) == [], "the small disk was private to the process"


A, B = {"p": "a"}, {"p": "b"}


def row(key: int, value: str = "v", partition: str = "a") -> Row:
    return {"id": key, "value": value, "p": partition}


class Story:
    """Operations in the order of their commits; `read` is the version that each has read, the newest if not given."""

    def __init__(self) -> None:
        self.model = Model("t")
        self.operations: dict[str, Operation] = {}
        self.model.replay([commit(0, {"soak": "create"})], {})

    def do(self, action: Action, *, read: int | None = None, nonce: str = "", **fields: Any) -> None:
        version = self.model.version + 1
        seen = version - 1 if read is None else read
        operation = Operation(nonce or f"n-{version}", "t", action, seen, **fields)
        self.operations[operation.nonce] = operation
        self.replay({"soak": operation.nonce})

    def replay(self, info: dict[str, Any]) -> None:
        self.model.replay([commit(self.model.version + 1, info)], self.operations)

    def append(self, *rows: Row) -> None:
        self.do(Action.APPEND, rows=rows)

    @property
    def values(self) -> dict[int, Any]:
        return {key: found["value"] for key, found in self.model.rows_at(self.model.version).items()}


def commit(version: int, info: dict[str, Any]) -> Commit:
    return Commit(version, ({"commitInfo": info},), "")


def test_commits_that_no_one_made_or_that_come_twice_are_found() -> None:
    story = Story()
    story.replay({"userMetadata": "who?"})
    assert "made by no one we know" in story.model.problems.pop()
    story.append(row(1))
    story.replay({"soak": "n-2"})
    assert "is there already as version 2" in story.model.problems.pop()
    story.do(Action.VACUUM, nonce="twice")
    story.do(Action.VACUUM, nonce="twice")
    assert story.model.problems == []


def test_an_id_that_comes_twice_is_found() -> None:
    story = Story()
    story.append(row(1))
    story.append(row(1))
    assert "id 1 was used before" in story.model.problems.pop()


def test_an_operation_is_empty_only_where_no_row_matched_on_some_snapshot() -> None:
    story = Story()
    story.append(row(1))
    delete = Operation("d", "t", Action.DELETE, 1, where=Where(A, ids=(1,)))
    assert not story.model.effect_is_empty(delete, 1)
    assert story.model.effect_is_empty(Operation("d", "t", Action.DELETE, 1, where=Where(B)), 1)
    assert not story.model.effect_is_empty(Operation("a", "t", Action.APPEND, 1, rows=(row(2),)), 1)
    story.do(Action.DELETE, where=Where(A))
    assert not story.model.effect_is_empty(delete, 1), "it was accepted before the row was gone"
    assert story.model.effect_is_empty(delete, 2), "another had deleted the row before"
