"""When the tables file is read, and what is known of it."""

import os
from pathlib import Path

import pytest
import structlog

from decider.background.tables_file_sync import TablesFile
from decider.declared.table_declarations import AppliedDeclarations
from decider.declared.tables_file import TablesFileReader
from decider.events.resolver import AllowedRoots
from decider.state.effective_policy import PolicyDefaults

READER = TablesFileReader(AllowedRoots(), PolicyDefaults)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tables.yaml"


def test_a_file_is_read_again_only_after_it_changed(file: Path) -> None:
    watched = TablesFile(file, lambda: 7)
    file.write_text("tables: []")
    first = watched.current(READER)
    assert first is not None
    assert watched.current(READER) is first
    file.write_text("tables: [{location: /a, name: a}]")
    found = watched.current(READER)
    assert found is not None
    assert [one.name for one in found.tables.values()] == ["a"]
    assert watched.status.tables == 1


def test_a_refused_file_is_logged_once_and_the_last_good_content_stays(file: Path) -> None:
    watched = TablesFile(file, lambda: 7)
    with structlog.testing.capture_logs() as logs:
        assert watched.current(READER) is None
        assert watched.current(READER) is None
        file.write_text("tables: []")
        good = watched.current(READER)
        file.write_text("tables: {}")
        assert watched.current(READER) is good
        assert watched.current(READER) is good
    assert [one["event"] for one in logs] == ["tables_file_refused", "tables_file_refused"]
    assert "No such file" in logs[0]["error"]
    assert watched.status.error.endswith(":1:9: `tables` must be a list")
    file.write_text("tables: []\n")
    assert watched.current(READER) is not None
    assert watched.status.error == ""


def test_entries_that_could_not_be_applied_are_logged_when_they_change(file: Path) -> None:
    watched = TablesFile(file, lambda: 7)
    refused = AppliedDeclarations(problems=("line 2:3: taken",))
    with structlog.testing.capture_logs() as logs:
        for applied in (refused, refused, AppliedDeclarations(), refused):
            watched.note(applied)
    assert len(logs) == 2
    assert (watched.status.problems, watched.status.applied_ms) == (refused.problems, 7)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "deep"])
def test_a_file_that_is_none_or_has_no_end_is_refused_and_the_last_good_content_stays(file: Path, kind: str) -> None:
    watched = TablesFile(file, lambda: 7)
    file.write_text("tables: []")
    good = watched.current(READER)
    assert good is not None
    file.unlink()
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "endless":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
        case _:
            file.write_text("[" * 100_000)  # Ends the process in the parser's C.
    assert watched.current(READER) is good
    assert str(file) in watched.status.error


def test_a_file_behind_a_link_is_read(file: Path, tmp_path: Path) -> None:
    """As Kubernetes mounts them."""
    (tmp_path / "data").write_text("tables: []")
    file.symlink_to(tmp_path / "data")
    assert TablesFile(file, lambda: 7).current(READER) is not None
