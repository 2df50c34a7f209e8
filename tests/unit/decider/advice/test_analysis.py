"""Advice: the best setting is found where one is known, promises what is gained, and is silent where nothing is."""

import random
from dataclasses import replace
from functools import cache

import pytest

from decider.advice.analysis import (
    MIN_COMMITS,
    MIN_SAVED_SHARE,
    actual_cost_s,
    analyze,
    former_values,
    is_in_force,
    judge,
)
from decider.state.effective_policy import EffectivePolicy, resolve_unregistered
from decider.store.tables.advice_records import Advice, AdviceStatus
from decider.whatif.comparison import CostModel
from decider.whatif.examination import examine
from decider.whatif.simulator import replay_lakewright
from decider.whatif.storage import StorageStep
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import GIB, MIB, Policy, apply
from shared.policy.properties import as_properties, read_settings
from shared.refusals import Refusal, RefusalCode
from shared.table import Commit, DataFile, RemovedFile, TableId, TableMetadata

HOUR_MS = 3_600_000
PRICES = CostModel()
READ = CostModel(tail_hours=0.0)
T = TableId("t")
COMMITS = 160


def trace(commits: int = 100, size: int = MIB, every_ms: int = 600_000, **more) -> TableTrace:
    made = tuple(Commit(n, n * every_ms, "WRITE", (DataFile(f"f{n}", size, WHOLE_TABLE),)) for n in range(commits))
    return TableTrace("memory:///t", 0, commits - 1, TableMetadata("t", (), {}), CommitTrace((), made), 0, 0, 0, **more)


def in_force(**settings: str) -> EffectivePolicy:
    named = {name.replace("_", "-"): value for name, value in settings.items()}
    return resolve_unregistered(Policy(), as_properties(named), {})


def advised(found: TableTrace, policy: EffectivePolicy, *, rest_ms: int = 0) -> Advice | None:
    now_ms = found.history.commits[-1].timestamp_ms + rest_ms if found.history.commits else 0
    return analyze(T, found, policy, PRICES, now_ms, lambda _: None)


@cache
def found_for_off() -> Advice:
    """The advice for a table that is switched off."""
    found = advised(trace(COMMITS), in_force(enabled="false"))
    assert found is not None
    return found


def test_a_table_that_is_off_and_read_is_advised_to_be_on_with_the_figures() -> None:
    found = found_for_off()
    assert found.change["lakewright.enabled"] == "true"
    assert found.proof.commits == COMMITS
    assert found.proof.current.bytes_rewritten == 0 < found.proof.advised.bytes_rewritten
    assert found.proof.advised.files_mean < found.proof.current.files_mean
    assert found.proof.saved_share >= MIN_SAVED_SHARE
    whole = 1 - found.proof.advised.cost_s / found.proof.current.cost_s
    assert found.proof.saved_share == min(whole, found.proof.half_share)
    assert found.proof.saved_s_per_day == pytest.approx(
        found.proof.current.cost_s * found.proof.saved_share / found.proof.hours * 24
    )
    assert found.proof.hours == pytest.approx((COMMITS - 1) / 6)


def test_the_policy_that_was_advised_gets_no_further_advice() -> None:
    found = found_for_off()
    again = resolve_unregistered(Policy(), found.change, {})
    assert is_in_force(found.change, again.policy)
    assert advised(trace(COMMITS), again) is None


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(trace(MIN_COMMITS - 1, every_ms=HOUR_MS), id="too few commits"),
        pytest.param(trace(COMMITS, every_ms=1_000), id="minutes"),
        pytest.param(trace(COMMITS, every_ms=23 * HOUR_MS // COMMITS), id="hours"),
        pytest.param(trace(60, 256 * MIB, every_ms=HOUR_MS // 30), id="cheap"),
        pytest.param(trace(COMMITS, refusal=Refusal(RefusalCode.QBEAST, "t", "no", "none")), id="refused"),
    ],
)
def test_nothing_is_advised_on_little_ground(history: TableTrace) -> None:
    assert advised(history, in_force(enabled="false" if history.refusal else "true")) is None


def in_halves(*sizes: int) -> CommitTrace:
    """Two hundred commits of each size, the files of a half removed when the next one begins."""
    made: list[Commit] = []
    for half, size in enumerate(sizes):
        gone = tuple(RemovedFile(file.path) for commit in made[-200:] for file in commit.added)
        start_ms = made[-1].timestamp_ms + 1 if made else 0
        for n, one in enumerate(trace(200, size).history.commits):
            added = tuple(replace(file, path=f"{half}-{n}") for file in one.added)
            found = Commit(len(made), start_ms + one.timestamp_ms, "WRITE", added, removed=gone if n == 0 else ())
            made.append(found)
    return CommitTrace((), tuple(made))


@pytest.mark.parametrize(
    "sizes", [pytest.param((MIB, GIB), id="no longer"), pytest.param((GIB, MIB), id="for some days only")]
)
def test_what_would_have_paid_in_one_half_only_is_not_advised(sizes: tuple[int, int]) -> None:
    """A load of small files, before or after one of full files, for which no change of policy pays."""
    assert advised(replace(trace(COMMITS), history=in_halves(*sizes)), in_force(enabled="false")) is None
    assert advised(replace(trace(COMMITS), history=in_halves(MIB, MIB)), in_force(enabled="false")) is not None


def test_of_a_hundred_random_short_histories_nothing_is_advised() -> None:
    dice = random.Random(11)
    for number in range(100):
        commits = dice.randrange(2, 60)
        every_ms = dice.randrange(50, 23 * HOUR_MS // commits)
        found = trace(commits, dice.choice([1 << 12, MIB, 100 * MIB]), every_ms)
        policy = in_force(enabled=dice.choice(["true", "false"]))
        assert advised(found, policy) is None
        if number % 10 == 0:
            replayed = examine(found, policy, PRICES).recommendation
            assert (replayed.is_change, replayed.properties) == (False, {})
    minutes = examine(trace(COMMITS, every_ms=1_000), in_force(enabled="false"), PRICES).recommendation
    assert "shorter than 24 hours" in minutes.message


def test_the_time_without_commits_counts_and_is_bounded() -> None:
    at_once = found_for_off()
    rested, years = (
        advised(trace(COMMITS), in_force(enabled="false"), rest_ms=ms) for ms in (24 * HOUR_MS, 9_000 * HOUR_MS)
    )
    assert rested is not None
    assert years is not None
    assert rested.proof.hours == pytest.approx(at_once.proof.hours + 24)
    assert years.proof.hours == pytest.approx(at_once.proof.hours + 7 * 24)
    assert rested.proof.saved_share > at_once.proof.saved_share


def test_the_former_values_are_shown_as_a_person_would_set_them() -> None:
    change = {
        "lakewright.enabled": "true",
        "lakewright.fan-in": "4",
        "lakewright.tolerance": "0.3",
        "lakewright.target-file-size": "256MiB",
    }
    found = found_for_off()
    assert former_values(replace(found, change=change)) == {
        "lakewright.enabled": "false",
        "lakewright.fan-in": "",
        "lakewright.tolerance": "0.15",
        "lakewright.target-file-size": str(128 * MIB),
    }
    fixed = apply(Policy(), read_settings({"fan-in": "16"}))
    assert former_values(replace(found, change=change, former=fixed.encode()))["lakewright.fan-in"] == "16"


def test_records_are_read_back_as_they_were_written_and_a_later_release_may_add_to_them() -> None:
    found = found_for_off()
    judged = judge(replace(found, status=AdviceStatus.APPLIED), trace(100), PRICES, 10**10, lambda _: None)
    known = replace(found, status=AdviceStatus.JUDGED, judgement=judged)
    assert judged is not None
    assert Advice.decode(known.encode()) == known
    assert Advice.decode(known.encode().replace('{"table"', '{"later":1,"table"', 1)) == known
    assert (found.id, len(found.id)) == (known.id, 12)
    assert replace(found, change={"lakewright.fan-in": "4"}).id != found.id


def test_a_log_costs_what_its_files_and_its_rewrites_cost() -> None:
    """Two files for an hour, one that replaces both for an hour, and what comes after the last commit counts not."""
    history = CommitTrace(
        (DataFile("a", MIB, WHOLE_TABLE), DataFile("b", MIB, WHOLE_TABLE)),
        (
            Commit(1, 0, "WRITE", (DataFile("c", MIB, WHOLE_TABLE),)),
            Commit(3, 2 * HOUR_MS, "WRITE", (DataFile("d", MIB, WHOLE_TABLE),)),
        ),
    )
    steps = (
        StorageStep(0, MIB, 0, files=1),
        StorageStep(HOUR_MS, 3 * MIB, 3 * MIB, files=-2, rewritten_bytes=GIB),
        StorageStep(2 * HOUR_MS, MIB, 0, files=1),
        StorageStep(9 * HOUR_MS, 0, 0, files=-1, rewritten_bytes=GIB),
    )
    known = replace(trace(1), history=history, storage=steps)
    prices = CostModel(write_s_per_gib=7.0, open_s=0.5, queries_per_hour=4.0)
    assert actual_cost_s(known, prices) == pytest.approx(7.0 + (3 + 1) * 4.0 * 0.5)
    # A writer whose clock goes back takes no time away.
    back = replace(known, storage=(steps[0], replace(steps[1], at_ms=-HOUR_MS), steps[2]))
    assert actual_cost_s(back, prices) == pytest.approx(7.0 + 2 * 4.0 * 0.5)


def test_a_judgement_compares_what_happened_with_what_the_former_policy_would_have_cost() -> None:
    found = found_for_off()
    since = trace(100)
    left_alone = tuple(StorageStep(commit.timestamp_ms, MIB, 0, files=1) for commit in since.history.commits)
    judged = judge(found, replace(since, storage=left_alone), PRICES, 10**10, lambda _: None)
    assert judged is not None
    # Nothing was rewritten after all: it cost what the former policy, which was off, would have.
    assert judged.actual_s == pytest.approx(judged.former_s)
    assert judged.saved_share == pytest.approx(0.0)
    assert judged.predicted_share == found.proof.saved_share
    policy = apply(Policy.decode(found.former), read_settings(found.change))
    assert judged.advised_s == pytest.approx(READ.cost_s(replay_lakewright(since.history, policy)))
    assert judged.advised_s < judged.former_s


@pytest.mark.parametrize("since", [trace(MIN_COMMITS - 1), trace(200, every_ms=1_000)])
def test_nothing_is_judged_on_little_ground(since: TableTrace) -> None:
    found = found_for_off()
    now_ms = since.history.commits[-1].timestamp_ms
    assert judge(found, since, PRICES, now_ms, lambda _: None) is None or now_ms >= HOUR_MS


def test_of_a_table_that_costs_nothing_no_share_is_saved() -> None:
    found = found_for_off()
    free = replace(found.proof.current, write_s=0.0, read_s=0.0)
    assert replace(found.proof, current=free, advised=free).saved_share == 0.0
    judged = judge(found, trace(100), PRICES, 10**10, lambda _: None)
    assert judged is not None
    assert replace(judged, former_s=0.0).saved_share == 0.0
