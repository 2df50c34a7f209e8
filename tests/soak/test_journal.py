"""A journal holds an operation before it is tried; the balloon fills the disk and gives all of it back."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.soak.disk import wrapper_of_namespace
from tests.soak.journal import Journal, Journals
from tests.soak.operations import Action, Chooser, Operation, View
from tests.soak.tables import TABLES
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
