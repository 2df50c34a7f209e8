"""What others use of a machine: computed from ticks, read from Linux, and never what the asking program uses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.machine_load import CALM_AGAIN, SAMPLE_S, WINDOW_S, CpuTicks, MachineLoad, others, read_ticks
from tests.support.burners import burners, ticks_of
from tests.support.waiting import until

LINUX = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux says what its processes use")


class Machine:
    """Ticks and a clock that the test moves: 100 ticks a second, one core."""

    def __init__(self) -> None:
        self.now_s, self.used, self.own, self.reads = 0.0, 0.0, 0.0, 0
        self.is_known = True

    def work(self, seconds: float, *, by_others: float = 0.0, own: float = 0.0) -> None:
        self.now_s += seconds
        self.used += seconds * (by_others + own)
        self.own += seconds * own

    def read(self) -> CpuTicks | None:
        self.reads += 1
        return CpuTicks(*(round(100 * one) for one in (self.now_s, self.used, self.own))) if self.is_known else None

    def load(self, limit: float) -> MachineLoad:
        return MachineLoad(limit, self.read, lambda: self.now_s)


def test_a_machine_is_busy_while_others_use_more_than_the_limit_whatever_it_uses_itself() -> None:
    machine = Machine()
    load = machine.load(0.5)
    assert not load.is_busy()
    machine.work(WINDOW_S, own=1.0)
    assert not load.is_busy()
    machine.work(WINDOW_S, by_others=0.6, own=0.4)
    assert load.is_busy()
    machine.work(WINDOW_S, by_others=0.6 * CALM_AGAIN)
    assert load.is_busy(), "near the limit it stays as it is"
    machine.work(WINDOW_S, by_others=0.4 * CALM_AGAIN, own=0.6)
    assert not load.is_busy()


def test_a_moment_does_not_count_and_a_minute_is_more_than_enough() -> None:
    machine = Machine()
    load = machine.load(0.75)
    for _ in range(10):
        assert not load.is_busy()
        machine.work(SAMPLE_S, by_others=0.1)
    machine.work(SAMPLE_S, by_others=1.0)
    assert not load.is_busy()
    machine.work(WINDOW_S, by_others=1.0)
    assert load.is_busy()


def test_the_machine_is_read_no_more_often_than_it_must_be() -> None:
    machine = Machine()
    load = machine.load(0.5)
    for _ in range(100):
        load.is_busy()
        machine.work(SAMPLE_S / 10)
    assert machine.reads == 10
    off = machine.load(1.0)
    machine.work(WINDOW_S, by_others=1.0)
    assert (off.is_busy(), machine.reads) == (False, 10)


def test_what_is_not_known_stops_nothing() -> None:
    machine = Machine()
    machine.is_known = False
    load = machine.load(0.0)
    machine.work(WINDOW_S, by_others=1.0)
    assert not load.is_busy()
    assert others(CpuTicks(5, 5, 0), CpuTicks(5, 5, 0)) == 0.0


@pytest.mark.parametrize("stat", [None, "", "cpu\n", "cpu a b c\n"])
def test_another_system_is_not_known(tmp_path: Path, stat: str | None) -> None:
    if stat is not None:
        (tmp_path / "stat").write_text(stat)
    found = read_ticks(tmp_path)
    assert found is None or found.total == 0


def test_processes_count_with_all_that_are_below_them(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  10 20 30 400 50 6 7 8 9 9\ncpu0 1 1 1 1\n")
    parents = {os.getpid(): 1, 7_000_001: os.getpid(), 7_000_002: 7_000_001, 7_000_003: 1}
    for process, parent in parents.items():
        (tmp_path / str(process)).mkdir()
        line = f"{process} (a) b) S {parent} 1 1 0 -1 4194304 98 0 0 0 1000 200 30 4 20 0 1"
        (tmp_path / str(process) / "stat").write_text(line)
    (tmp_path / "7000004").mkdir()  # It has ended meanwhile.
    assert read_ticks(tmp_path) == CpuTicks(total=531, used=81, own=3 * 1_234)


@LINUX
def test_linux_counts_a_program_beside_as_others_and_a_child_as_own() -> None:
    """Ticks are counted and not time, so that any load of the machine is fine."""
    burnt = 50
    with burners(1) as (beside,):
        first, began = read_ticks(), ticks_of(beside)
        assert first is not None
        child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            until("both have worked", lambda: min(ticks_of(beside) - began, ticks_of(child.pid)) > burnt, seconds=60)
        finally:
            child.kill()
            child.wait()
        last = read_ticks()
        assert last is not None
    assert last.own - first.own >= burnt
    assert (last.used - first.used) - (last.own - first.own) >= burnt - 2
    assert 0 < others(first, last) <= 1
