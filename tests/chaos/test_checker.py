"""The checker of `make chaos` must be able to fail: each promise that is broken is seen."""

import json
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos.checker import Verdict, check
from tests.chaos.world import Table


def verdict(folder: Path, *histories: list[dict[str, Any]], stuck: int = 0) -> Verdict:
    for number, history in enumerate(histories):
        (folder / f"w{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in history))
    world = SimpleNamespace(
        folder=folder, tables=[TABLE], acknowledged_lost=0, kills=1, recovered_s=[], random=Random(1)
    )
    return check(world, stuck)  # type: ignore[arg-type] # what the checker reads of a world


TABLE = Table("t0", log=[0, 0])
JOB = TABLE.spec(1).id


def run(token: int, version: int, verdict: str = "done") -> list[dict[str, Any]]:
    same = {"job": JOB, "token": token, "version": version}
    return [
        {"event": "claimed", **same},
        {"event": "committed", **same},
        {"event": "finished", "verdict": verdict, **same},
    ]


def test_a_clean_history_is_good(tmp_path: Path) -> None:
    found = verdict(tmp_path, run(1, 0) + run(2, 1, "yield") + run(3, 1))
    assert found.is_good
    assert (found.events, found.duplicates) == (2, 0)


@pytest.mark.parametrize(
    ("histories", "stuck"),
    [([run(1, 0)], 0), ([run(2, 0) + run(1, 1)], 0), ([run(1, 0), run(1, 1)], 0), ([run(1, 1)], 1)],
    ids=["an event is lost", "a token goes back", "a token comes twice", "a job is stuck"],
)
def test_a_broken_promise_is_seen(tmp_path: Path, histories: list[list[dict[str, Any]]], stuck: int) -> None:
    assert not verdict(tmp_path, *histories, stuck=stuck).is_good


def test_a_repeated_commit_is_a_duplicate(tmp_path: Path) -> None:
    assert verdict(tmp_path, run(1, 1), run(2, 1)).duplicates == 1
