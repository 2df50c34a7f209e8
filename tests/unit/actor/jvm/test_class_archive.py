"""The class archive is adopted only when finished, belongs to one Java with its jars, and never stands in the way."""

import os
from pathlib import Path

import pytest

from actor.jvm.class_archive import ClassArchive, class_archive

NOW_S = 1_000_000.0
FINISHED, UNFINISHED = b"\xa8\xba\x0b\xf0 and more", b"\0\0\0\0 and more"


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    return ClassArchive(tmp_path / "classes", "key")


def leave(archive: ClassArchive, name: str, content: bytes, *, age_s: float) -> Path:
    archive.directory.mkdir(exist_ok=True)
    file = archive.directory / name
    file.write_bytes(content)
    os.utime(file, (NOW_S - age_s, NOW_S - age_s))
    return file


def first_option(archive: ClassArchive, process: int = 7) -> str:
    return archive.options(now_s=NOW_S, process=process)[0]


def test_the_first_start_makes_an_archive_in_a_file_of_its_own(archive: ClassArchive) -> None:
    assert first_option(archive, process=7) == f"-XX:ArchiveClassesAtExit={archive.directory}/key.7.new"
    assert first_option(archive, process=8) == f"-XX:ArchiveClassesAtExit={archive.directory}/key.8.new"


def test_a_finished_file_is_adopted_and_used(archive: ClassArchive) -> None:
    new = leave(archive, "key.7.new", FINISHED, age_s=60)

    assert first_option(archive) == f"-XX:SharedArchiveFile={archive.file}"
    assert archive.file.read_bytes() == FINISHED
    assert not new.exists()


def test_a_file_that_may_still_be_written_to_is_left_alone(archive: ClassArchive) -> None:
    new = leave(archive, "key.7.new", FINISHED, age_s=5)

    assert first_option(archive).startswith("-XX:ArchiveClassesAtExit=")
    assert new.exists()


def test_a_file_whose_process_was_killed_while_writing_is_deleted_not_adopted(archive: ClassArchive) -> None:
    new = leave(archive, "key.7.new", UNFINISHED, age_s=60)

    assert first_option(archive).startswith("-XX:ArchiveClassesAtExit=")
    assert not new.exists()


def test_of_two_finished_files_one_is_adopted_and_the_other_deleted(archive: ClassArchive) -> None:
    for process in (7, 8):
        leave(archive, f"key.{process}.new", FINISHED, age_s=60)

    first_option(archive)

    assert [file.name for file in archive.directory.iterdir()] == ["key.jsa"]


def test_archives_of_another_java_go_once_there_is_one_for_this(archive: ClassArchive) -> None:
    other = leave(archive, "other.jsa", FINISHED, age_s=60)
    leave(archive, "other.9.new", FINISHED, age_s=60)

    assert first_option(archive).startswith("-XX:ArchiveClassesAtExit=")
    assert other.exists()
    leave(archive, "key.7.new", FINISHED, age_s=60)
    first_option(archive)

    assert [file.name for file in archive.directory.iterdir()] == ["key.jsa"]


def test_a_jvm_that_refuses_the_archive_runs_without_it(archive: ClassArchive) -> None:
    assert "-Xshare:auto" in archive.options(now_s=NOW_S, process=1)


def test_the_key_follows_the_java_and_every_jar(tmp_path: Path) -> None:
    java, jar = tmp_path / "java", tmp_path / "a.jar"
    java.mkdir()
    (java / "release").write_text("17.0.1")
    jar.write_bytes(b"1")

    def key() -> str:
        return class_archive(tmp_path, java_home=java, jars=[jar]).key

    first = key()
    assert key() == first
    jar.write_bytes(b"22")
    second = key()
    (java / "release").write_text("17.0.2")
    assert len({first, second, key()}) == 3
