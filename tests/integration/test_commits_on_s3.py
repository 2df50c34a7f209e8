"""A commit on S3 never replaces another one, is not taken for another's if its own answer was lost, and is whole."""

from collections.abc import Iterator

import pytest

from tests.support.programs_on_s3 import run_on_s3
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.s3, pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.long("s3")]


@pytest.fixture
def s3() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


def place(case: str) -> str:
    return f"{case}/_delta_log/{0:020d}.json"


def test_a_commit_is_made_once_or_not_at_all_and_its_writer_is_told_which(s3: S3Server) -> None:
    s3.put("lake", place("taken"), b"theirs\n")
    s3.put("lake", place("taken-unheard"), b"theirs\n")
    s3.gate.lost = {place("unheard"): [500, 503], place("taken-unheard"): [500]}
    # A number is no line: the store fails after it took the first one.
    lines = {"free": ["ours"], "taken": ["ours"], "unheard": ["ours"], "taken-unheard": ["ours"], "cut": ["first", 5]}
    commits = {f"s3://lake/{place(case)}": given for case, given in lines.items()}
    ends = run_on_s3("commit", {"": s3.options()}, commits)
    told = {case: ends[f"s3://lake/{place(case)}"] for case in lines}

    assert told.pop("cut"), "half a commit was taken for a whole one"
    taken = "FileAlreadyExistsException"
    assert told == {"free": "", "taken": taken, "unheard": "", "taken-unheard": taken}
    assert not any(s3.gate.lost.values()), "the answers were lost"
    held = {key.partition("/")[0]: s3.get("lake", key) for key in s3.keys("lake")}
    ours, theirs = b"ours\n", b"theirs\n"
    assert held == {"free": ours, "taken": theirs, "unheard": ours, "taken-unheard": theirs}
