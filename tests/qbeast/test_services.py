"""A table with a Qbeast index under real services: written by the library, optimized by the actor of such tables."""

import itertools
import json
import random
import shutil
import time
from pathlib import Path

import psutil
import pytest

from tests.support.outside import is_at_rest
from tests.support.qbeast_process import QbeastProcess
from tests.support.qbeast_services import NAME, actor, actors, begin, decisions, is_done, set_properties, unset
from tests.support.qbeast_table import index_versions, newest_index
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.redis, pytest.mark.long("qbeast")]

APPENDS = 60
ROWS = 1_000
CUBE = 1_000
SAMPLES = (0.01, 0.05, 0.2)


@pytest.fixture(scope="module")
def written(qbeast: QbeastProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 60 appends by the library, which no test changes."""
    path = tmp_path_factory.mktemp("written") / "t"
    started = time.monotonic()
    for number in range(APPENDS):
        qbeast.append(path=path.as_uri(), first=number * ROWS, rows=ROWS, cube_size=CUBE)
    print(f"\n{APPENDS} appends of {ROWS} rows took {time.monotonic() - started:.0f} s")
    return path


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and of all that it started."""
    root = psutil.Process(pid)
    times = [one.cpu_times() for one in (root, *root.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def sampled(qbeast: QbeastProcess, table: Path) -> list[int]:
    return [qbeast.sample(path=table.as_uri(), fraction=fraction)["bytes"] for fraction in SAMPLES]


@pytest.mark.parametrize("budget", ["300 KB", "1 GB"])
def test_sixty_appends_are_optimized_until_nothing_is_eligible(
    stack: Stack, qbeast: QbeastProcess, written: Path, budget: str
) -> None:
    table, beside = stack.tables / "t", stack.folder / "beside"
    for place in (table, beside):
        shutil.copytree(written, place)
    before, rows, samples = newest_index(table), qbeast.checksum(path=table.as_uri()), sampled(qbeast, table)
    assert rows[0] == str(APPENDS * ROWS)
    spent = cpu_s(qbeast.pid())
    qbeast.optimize(path=beside.as_uri())
    spent = cpu_s(qbeast.pid()) - spent
    whole = newest_index(beside)
    set_properties(
        qbeast, table, **{"use.optimization.autoOptimize.enabled": "true", "use.optimization.bytes-per-iter": budget}
    )
    begin(stack, table)
    running = actor(stack)
    until("the actor is there", lambda: stack.get("/v1/actors")["actors"], seconds=240)
    idle = cpu_s(running.popen.pid)
    until("the index is optimized", lambda: is_done(stack, table), seconds=900)
    used = cpu_s(running.popen.pid) - idle
    versions = [one for one in index_versions(table) if one.index.version >= before.index.version]
    ours = [one for one in versions if one.mark is not None]
    after = versions[-1]
    rewritten = sum(one.removed_bytes for one in ours)
    steps = [one.progress for one in versions]
    print(
        f"\nbudget {budget}: {len(ours)} iterations, fragmentation {before.fragmentation:.2f} -> "
        f"{after.fragmentation:.2f}, (overhanging, blocks) {[(p.overhang_blocks, p.blocks) for p in steps]}"
        f"\n  rewritten {rewritten} of {before.bytes} bytes ({rewritten / before.bytes:.2f}), CPU {used:.1f} s"
        f"\n  the library's optimize(): rewritten {whole.removed_bytes} ({whole.removed_bytes / before.bytes:.2f}), "
        f"CPU {spent:.1f} s, fragmentation {whole.fragmentation:.2f}"
        f"\n  bytes of samples {SAMPLES}: before {samples}, ours {sampled(qbeast, table)}, "
        f"the library's {sampled(qbeast, beside)}"
    )
    assert ours
    for previous, following in itertools.pairwise(versions):
        if following.mark is not None:
            assert following.progress < previous.progress
    assert after.fragmentation < before.fragmentation
    assert qbeast.checksum(path=table.as_uri()) == rows
    assert all(now < then for now, then in zip(sampled(qbeast, table), samples, strict=True))
    made = decisions(stack)
    assert {one["reason"] for one in made if one["action"] == "compact"} <= {"indexed_table", "own_commit"}
    assert any(one["reason"] == "eligible_blocks" for one in made)
    listed = stack.get(f"/v1/tables/{NAME}/optimizations")["optimizations"]
    assert {one["optimization_name"] for one in listed} == {"index"}
    assert stack.get("/v1/status")["funnel"]["index_iterations"] == len(ours)


def test_no_row_is_lost_or_doubled_by_appends_deletes_another_optimizer_and_a_killed_actor(
    stack: Stack, qbeast: QbeastProcess
) -> None:
    table, rng = stack.tables / "t", random.Random(11)
    wanted: set[int] = set()
    first = itertools.count(0, 300)

    def append() -> None:
        start = next(first)
        qbeast.append(path=table.as_uri(), first=start, rows=300, cube_size=60)
        wanted.update(range(start, start + 300))

    for _ in range(8):
        append()
    set_properties(qbeast, table, **{"lakewright.index": "on", "use.optimization.bytes-per-iter": "0"})
    begin(stack, table)
    running = actor(stack)
    until("the actor is there", lambda: stack.get("/v1/actors")["actors"], seconds=240)
    counts = {"append": 0, "delete": 0, "refused delete": 0, "optimize": 0, "killed": 0}
    for number in range(24):
        append()
        counts["append"] += 1
        if number % 3 == 1:
            digit = rng.randrange(100)
            try:
                qbeast.sql(text=f"DELETE FROM delta.`{table.as_uri()}` WHERE user % 100 = {digit}")
            except AssertionError as refused:
                # Delta refuses a DELETE whose files were rewritten meanwhile.
                if "Concurrent" not in str(refused):
                    raise
                counts["refused delete"] += 1
            else:
                wanted -= {user for user in wanted if user % 100 == digit}
                counts["delete"] += 1
        if number % 6 == 2:
            # As the actor does, but without the lease of the table's job.
            qbeast.run(path=table.as_uri(), may_conflict=True)
            counts["optimize"] += 1
        if number == 12:
            before = actors(stack)
            running.kill()
            running = actor(stack)
            counts["killed"] += 1
            # The self-test of a new actor takes longer than all appends that follow.
            until("the new actor is there", lambda: actors(stack) - before, seconds=240)  # noqa: B023
    until("the index is optimized", lambda: is_done(stack, table), seconds=600)
    ours = [one for one in index_versions(table) if one.mark is not None and one.mark.origin.job != "test"]
    others = [one for one in index_versions(table) if one.mark is not None and one.mark.origin.job == "test"]
    print(f"\n{counts}; commits of the actor: {len(ours)}, of the second optimizer: {len(others)}")
    assert ours
    assert others
    assert qbeast.users(path=table.as_uri()) == sorted(wanted)
    assert not stack.get("/v1/status")["queue"]["depth"]["quarantined"]


def test_properties_start_stop_and_reschedule_the_optimization(stack: Stack, qbeast: QbeastProcess) -> None:
    table = stack.tables / "t"
    for number in range(12):
        qbeast.append(path=table.as_uri(), first=number * 300, rows=300, cube_size=60)
    begin(stack, table)
    actor(stack)
    until("the actor is there", lambda: stack.get("/v1/actors")["actors"], seconds=240)

    def commits() -> int:
        return sum(one.mark is not None for one in index_versions(table))

    def seen() -> bool:
        return is_at_rest(stack, NAME, table)

    def view() -> dict[str, object]:
        found: dict[str, object] = stack.get(f"/v1/tables/{NAME}")
        return found

    until("the table is read", seen, seconds=60)
    assert view()["refusal"], "nothing is done without the owner's word"
    # A run by itself, with the type of the first generation of documents, and another one with the second's.
    set_properties(
        qbeast, table, **{"use.optimization.type": "LeveledCompaction", "use.optimization.bytes-per-iter": "0"}
    )
    until("one run was made", lambda: commits() > 0 and is_done(stack, table), seconds=300)
    assert view()["manual_run"]["outcome"] == "started"  # type: ignore[index]
    first = commits()
    for number in range(12, 20):
        qbeast.append(path=table.as_uri(), first=number * 300, rows=300, cube_size=60)
    until("the appends are read", seen, seconds=60)
    assert commits() == first, "a run is one run"
    set_properties(qbeast, table, **{"use.optimization.type": "CubeDefragmentation"})
    until("the other type made a run", lambda: commits() > first and is_done(stack, table), seconds=300)
    # Automatic from here on; a manual run is ignored, and that is seen.
    set_properties(qbeast, table, **{"use.optimization.autoOptimize.enabled": "true"})
    second = commits()
    for number in range(20, 32):
        qbeast.append(path=table.as_uri(), first=number * 300, rows=300, cube_size=60)
    until("what was appended is optimized", lambda: commits() > second and is_done(stack, table), seconds=300)
    set_properties(qbeast, table, **{"use.optimization.type": "LeveledCompaction"})
    until("the request is seen", lambda: view()["manual_run"]["outcome"] == "auto_optimize_enabled", seconds=60)  # type: ignore[index]
    # Stopped: nothing happens however much is eligible.
    unset(qbeast, table, "use.optimization.autoOptimize.enabled")
    until("the change is seen", seen, seconds=60)
    third = commits()
    for number in range(32, 44):
        qbeast.append(path=table.as_uri(), first=number * 300, rows=300, cube_size=60)
    until("the appends are read", seen, seconds=60)
    assert not newest_index(table).is_done
    assert commits() == third
    # A revision that the table does not have is a reason, and no failure.
    set_properties(
        qbeast,
        table,
        **{"use.optimization.autoOptimize.enabled": "true", "use.optimization.autoOptimize.revisionId": "9"},
    )
    until("the reason is shown", lambda: any(one["reason"] == "index_refused" for one in decisions(stack)), seconds=120)
    assert commits() == third
    unset(qbeast, table, "use.optimization.autoOptimize.revisionId")
    until("it goes on", lambda: commits() > third and is_done(stack, table), seconds=300)
    assert qbeast.users(path=table.as_uri()) == list(range(44 * 300))
    assert not stack.get("/v1/status")["queue"]["depth"]["quarantined"]
    print("\n" + json.dumps({"commits": commits()}))
