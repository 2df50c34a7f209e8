"""An actor's scratch space goes with it, and a killed actor's with the next one; a service ends in order."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from services.actor.scratch import scratch_dir
from services.actor.serve import mark_alive
from services.private import private_dir
from shared.errors import PermanentError


def folders(parent: Path) -> list[Path]:
    return list(parent.glob("actor-*"))


def test_it_is_gone_afterwards(tmp_path: Path) -> None:
    with scratch_dir(tmp_path) as folder:
        (folder / "spill").write_text("x")
        assert folder.parent == tmp_path
    assert folders(tmp_path) == []


def test_a_folder_is_never_seen_between_being_made_and_being_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sweeps meanwhile waits: a folder that is not locked yet looks like a dead process's."""
    make, seen = tempfile.mkdtemp, []

    def look(*arguments: str, **named: str) -> str:
        made = make(*arguments, **named)
        with (tmp_path / ".lock").open() as turn, pytest.raises(BlockingIOError):
            fcntl.flock(turn, fcntl.LOCK_SH | fcntl.LOCK_NB)
        seen.append(made)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", look)
    with scratch_dir(tmp_path) as mine:
        assert seen == [str(mine)]
        with (tmp_path / ".lock").open() as turn:
            fcntl.flock(turn, fcntl.LOCK_SH | fcntl.LOCK_NB)  # No one has to wait for an owner to end.


def test_a_folder_that_was_never_locked_is_removed(tmp_path: Path) -> None:
    (tmp_path / "actor-killed").mkdir()
    with scratch_dir(tmp_path) as mine:
        assert folders(tmp_path) == [mine]


def test_a_private_folder_is_made_and_taken_again(tmp_path: Path) -> None:
    made = private_dir(tmp_path / "p")
    assert made.stat().st_mode & 0o777 == 0o700
    assert private_dir(made) == made


@pytest.mark.parametrize("what", ["link", "file", "entered by others", "another user's"])
def test_a_folder_that_others_could_have_laid_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    place = tmp_path / "p"
    match what:
        case "link":
            (tmp_path / "elsewhere").mkdir(mode=0o700)
            place.symlink_to(tmp_path / "elsewhere")
        case "file":
            place.touch(mode=0o600)
        case "entered by others":
            place.mkdir()
            place.chmod(0o750)
        case _:
            place.mkdir(mode=0o700)
            monkeypatch.setattr(os, "getuid", lambda: place.stat().st_uid + 1)
    with pytest.raises(PermanentError, match="not a folder of this user alone"):
        private_dir(place)


def test_a_heartbeat_sets_the_time_of_the_ready_file_and_makes_none(tmp_path: Path) -> None:
    file = tmp_path / "actor.ready"
    mark_alive(file)
    assert not file.exists()
    file.touch()
    os.utime(file, (0, 0))
    mark_alive(file)
    assert file.stat().st_mtime > 0
