"""An actor opens no table that has a pipe, a device or a link where Spark would open a file."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from actor.odd_files import first_odd, local_boundary
from services.actor.settings import actor_settings
from shared.errors import Unsupported
from shared.paths.boundary import Boundary


def _socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(place))


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a link": lambda place: place.symlink_to("/etc/passwd"),
}
PLACES = ("_delta_log/2.json", "_delta_log/_sidecars/a.parquet", "metadata/v2.metadata.json", "x.parquet")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for folder in ("_delta_log/_sidecars", "metadata", "p=1"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("_delta_log/1.json", "metadata/v1.metadata.json", "p=1/y.parquet"):
        (tmp_path / name).touch()
    return tmp_path


def check(table: Path, boundary: Boundary) -> None:
    boundary.check_table(table.as_uri())
    boundary.check_links(table.as_uri(), ["x.parquet", "p=1/y.parquet"])


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("place", PLACES)
def test_a_table_with_what_is_no_plain_file_is_refused_before_spark_opens_it(
    table: Path, place: str, kind: str
) -> None:
    boundary = actor_settings({}).boundary
    check(table, boundary)
    ODD[kind](table / place)
    if place == "x.parquet" and kind == "a link":
        expected = "is file:///etc/passwd by a link"
    else:
        expected = f"{place} is {kind} and not a plain file"
    with pytest.raises(Unsupported, match=expected):
        check(table, boundary)


def test_a_link_inside_of_a_table_to_a_plain_file_is_one_and_to_a_pipe_is_none(table: Path) -> None:
    boundary = Boundary(real_path=os.path.realpath, first_odd=first_odd)
    (table / "x.parquet").symlink_to(table / "p=1" / "y.parquet")
    check(table, boundary)
    os.mkfifo(table / "pipe")
    (table / "x.parquet").unlink()
    (table / "x.parquet").symlink_to(table / "pipe")
    with pytest.raises(Unsupported, match="pipe is a pipe"):
        check(table, boundary)


def test_what_is_missing_or_closed_is_left_to_who_opens_it(tmp_path: Path) -> None:
    assert first_odd(str(tmp_path / "none")) == ""


def test_an_actor_without_roots_follows_links_and_opens_no_odd_file(table: Path) -> None:
    found = local_boundary()
    assert found.first_odd is first_odd
    assert found.real_path(str(table)) == os.path.realpath(table)
