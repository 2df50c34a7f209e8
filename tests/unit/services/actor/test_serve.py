"""The file by which probes see an actor: there while it takes jobs, and as old as its last heartbeat."""

import os
from pathlib import Path

from services.actor.serve import mark_alive


def test_a_heartbeat_sets_the_time_of_the_ready_file_and_makes_none(tmp_path: Path) -> None:
    file = tmp_path / "actor.ready"
    mark_alive(file)
    assert not file.exists()
    file.touch()
    os.utime(file, (0, 0))
    mark_alive(file)
    assert file.stat().st_mtime > 0
