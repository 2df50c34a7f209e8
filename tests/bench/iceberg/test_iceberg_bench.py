"""What the benchmark on Iceberg stands on, without Spark: Amoro's rule on the files of the table that is played."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from shared.policy.policy import KIB
from tests.bench.delta.playing import Played
from tests.bench.delta.rules import TARGET_BYTES
from tests.bench.iceberg.__main__ import limits
from tests.bench.iceberg.rules import Amoro


class Engine:
    """Notes what is to be rewritten, and commits it."""

    def __init__(self) -> None:
        self.asked: list[list[list[str]]] = []
        self.version: int | None = 1

    def rewrite(self, request: Any, control: Any) -> Any:
        control.may_commit()
        assert not control.should_stop()
        self.asked.append([[file.path for file in group.files] for group in request.groups])
        return SimpleNamespace(version=self.version)


def played(engine: Engine, live: dict[str, tuple[str, int]]) -> Amoro:
    rule = Amoro(engine)  # type: ignore[arg-type]
    rule.begin(SimpleNamespace(live=live, path=Path("/t")))  # type: ignore[arg-type]
    return rule


def after(rule: Amoro, number: int) -> None:
    rule.look()
    rule.after(number)


def test_amoro_takes_twelve_fragments_of_a_partition_at_once_and_two_an_hour_later() -> None:
    engine = Engine()
    live = {f"a{number:02d}": ("2026-01-01", KIB) for number in range(12)} | {"b": ("2026-01-02", KIB)}
    rule = played(engine, live)
    after(rule, 1)
    assert engine.asked == [[sorted(live)[:12]]]
    live.clear()
    live |= dict.fromkeys(("c", "d"), ("2026-01-01", KIB))
    after(rule, 2)
    assert len(engine.asked) == 1
    after(rule, 62)
    assert engine.asked[1:] == [[["c", "d"]]]
    engine.version = None
    with pytest.raises(RuntimeError, match="nothing was committed after commit 200"):
        after(rule, 200)


def test_files_of_the_target_size_are_left_alone() -> None:
    engine = Engine()
    after(played(engine, {f"{number}": ("2026-01-01", TARGET_BYTES) for number in range(20)}), 1)
    assert engine.asked == []


@pytest.mark.parametrize(
    ("ours", "met"),
    [
        (Played("Lakewright", cpu_s_by_round=[9.0, 4.0], curve=[10, 20], merges=9), [True, True, True]),
        (Played("Lakewright", cpu_s_by_round=[1.0, 4.1], curve=[10, 22], merges_aborted=1), [False, False, False]),
    ],
)
def test_the_limits_are_hourly_rewrites_cpu_half_of_its_files_and_no_aborted_merge(
    ours: Played, met: list[bool]
) -> None:
    hourly = Played("rewrite_data_files hourly", cpu_s_by_round=[1.0, 4.0], curve=[20, 40])
    assert [one.is_met for one in limits(None, [ours, hourly])] == met
    assert limits(None, [ours]) == []
