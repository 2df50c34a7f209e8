"""What a soak has shown: figures for people and for JSON, and every broken promise."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psutil
from redis import RedisError
from rich.console import Console
from rich.table import Table

from shared.run_counters import RunCounter
from tests.soak.checker import broken_answers, lost_answers
from tests.soak.faults import Faults, is_no_space
from tests.soak.household import DELTALAKE_WRITERS, SPARK_WRITER, Household
from tests.soak.log import Orphans, TableLog
from tests.soak.operations import Action
from tests.soak.watch import Watch
from tests.support.line_chart import Line, draw

MIB = 1 << 20
DECIDER, ACTOR, REDIS = "decider", "largest actor, with its JVM", "Redis, data"


@dataclass(slots=True)
class Memory:
    """Resident MiB by service: a process with all that it started; of Redis what its data takes."""

    home: Household
    samples: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def sample(self, elapsed_s: float) -> None:
        """Note what is used now; a service that is away is left out."""
        running = dict(self.home.running)
        found = {DECIDER: [running["decider"].popen.pid] if "decider" in running else []}
        found[ACTOR] = [running[name].popen.pid for name in self.home.actors()]
        for what, pids in found.items():
            sizes = [size for pid in pids if (size := _resident_bytes(pid))]
            if sizes:
                self._note(what, elapsed_s, max(sizes))
        with suppress(RedisError), self.home.stack.redis.client() as client:
            self._note(REDIS, elapsed_s, int(client.info("memory")["used_memory"]))

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the medians of the second and of the last quarter of the run in MiB, and the most."""
        return {what: _trend(samples) for what, samples in self.samples.items() if samples}

    def picture(self) -> str:
        """Return the curves as SVG text."""
        lines = [Line(what, samples) for what, samples in self.samples.items()]
        return draw("Memory of Lakewright in a soak", lines, unit="MiB")

    def _note(self, what: str, elapsed_s: float, size: int) -> None:
        self.samples.setdefault(what, []).append((round(elapsed_s, 1), round(size / MIB, 1)))


def _resident_bytes(pid: int) -> int:
    """Return what a process and its descendants hold; 0 once it is gone."""
    try:
        process = psutil.Process(pid)
        return sum(int(one.memory_info().rss) for one in (process, *process.children(recursive=True)))
    except psutil.Error:
        return 0


def _trend(samples: list[tuple[float, float]]) -> dict[str, float]:
    last_s = samples[-1][0]
    quarters = [
        [size for at, size in samples if low * last_s <= at <= high * last_s] for low, high in ((0.25, 0.5), (0.75, 1))
    ]
    second, last = (round(median(sizes), 1) if sizes else 0.0 for sizes in quarters)
    return {"second_quarter_mib": second, "last_quarter_mib": last, "most_mib": max(size for _, size in samples)}


SHOWN = 20
"""Lines of each kind of finding that are printed and kept; their number is told, too."""
PROOFREAD_COUNTERS = (
    RunCounter.GROUPS_PROOFREAD_BY_ROWS,
    RunCounter.GROUPS_PROOFREAD_BY_BYTES,
    RunCounter.GROUPS_UNVERIFIED,
    RunCounter.PROOFREAD_CPU_MS,
)
ERROR_CHARS = 90
"""As much of an error as tells its kind."""


@dataclass(slots=True)
class Verdict:
    """`problems`: broken promises besides the readers' differences. `orphans`: files that no log names, by table."""

    seed: int
    with_lakewright: bool
    watch: Watch
    faults: Faults
    home: Household
    memory: Memory
    problems: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)
    orphans: dict[str, Orphans] = field(default_factory=dict)
    orphans_after_vacuum: dict[str, Orphans] = field(default_factory=dict)
    job_errors: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    proofread: Mapping[str, int] = field(default_factory=dict)
    _at_release: Counter[str] | None = None

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not (self.problems or self.watch.differences or self.watch.unreadable)

    def note_disk_released(self) -> None:
        """Note who had committed how much when the disk had room again: everybody must go on."""
        self._at_release = self._commits()

    def note_jobs(self) -> None:
        """Note why jobs failed, and jobs that were set aside: none should be."""
        status = self.home.stack.get("/v1/status")
        self.proofread = {name: count for name, count in status["funnel"].items() if name in PROOFREAD_COUNTERS}
        if self.with_lakewright and not self.proofread.get(RunCounter.GROUPS_PROOFREAD_BY_ROWS):
            self.problems.append("no group was compared with its inputs by rows")
        depth = status["queue"]["depth"]
        if depth.get("quarantined"):
            self.problems.append(f"{depth['quarantined']} jobs are quarantined")
        for log in self.home.logs_of_actors():
            text = log.read_text(errors="replace")
            self.job_errors.update(job_errors(text))
            self.refusals.update(record["reason"] for record in _records(text, "files_refused"))
        # Files of one partition whose value is spelled in two ways are merged with those of the same spelling.
        if self.refusals:
            self.problems.append(f"files were refused: {set(self.refusals)}")

    def conclude(self) -> None:
        """Add what follows from logs and journals once all is over."""
        watch = self.watch
        for name, log in watch.logs.items():
            self.problems += [f"{name} {problem}" for problem in log.broken]
            self.problems += [
                f"{name} version {stray.version}: {stray.by} removed {stray.path!r}, which was never added, for a file "
                f"that {stray.owner} added"
                for stray in log.stray
                if "lakewright" in (stray.owner, stray.by)
            ]
            self.problems += [f"{name}: the commit {version} was replaced" for version in log.changed_commits()]
            self.problems += watch.models[name].problems
        self.problems += broken_answers(watch.journals, watch.models)
        self.problems += [f"a fault failed: {failure}" for failure in self.faults.failures]
        self.problems += [
            f"{name}: {len(left.data)} data files that no log names outlive VACUUM, {left.data[0]} first"
            for name, left in self.orphans_after_vacuum.items()
            if left.data
        ]
        if self.with_lakewright and not watch.rewrites():
            self.problems.append("nothing was rewritten, so nothing was shown")
        self._conclude_disk()
        self.not_shown += self.faults.not_shown
        self.not_shown += [f"{writer}: no {action} was accepted" for writer, action in self._never_accepted()]

    def figures(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        watch = self.watch
        logs = watch.logs.values()
        return {
            "good": self.good,
            "seed": self.seed,
            "with_lakewright": self.with_lakewright,
            "commits": dict(self._commits()),
            "accepted": {
                writer: {str(action): count for action, count in counts.items()}
                for writer, counts in self._accepted().items()
            },
            "refused": self.refused(),
            "errors": dict(self._errors().most_common(SHOWN)),
            "job_errors": dict(self.job_errors.most_common(SHOWN)),
            "lost_answers": lost_answers(watch.journals, watch.models),
            "rewrites": watch.rewrites(),
            "proofread": self.proofread,
            "refusals": dict(self.refusals),
            "files_replaced": sum(_files(log, "remove") for log in logs),
            "files_written": sum(_files(log, "add") for log in logs),
            "faults": dict(self.faults.done),
            "ended_by_themselves": dict(self.home.ended),
            "memory": self.memory.figures(),
            "writers_hit_by_the_full_disk": sum(is_no_space(error) for error in self._all_errors()),
            "checks": dict(watch.checks),
            "differences": [str(one) for one in watch.differences[:SHOWN]],
            "differences_number": len(watch.differences),
            "unreadable": watch.unreadable[:SHOWN],
            "unreadable_number": len(watch.unreadable),
            "problems": self.problems[:SHOWN],
            "problems_number": len(self.problems),
            "not_shown": self.not_shown,
            "orphans": _summed(self.orphans),
            "orphans_after_vacuum": _summed(self.orphans_after_vacuum),
            "staged_commits_left": [f"{name}/{file}" for name, one in self.orphans.items() for file in one.staged],
            "tables": {name: self._table(name, log) for name, log in watch.logs.items()},
        }

    def print(self, console: Console) -> None:
        """Show the summary."""
        figures = self.figures()
        columns = list(next(iter(figures["tables"].values())))
        table = Table("table", *(column.replace("_", " ") for column in columns), title="What each table holds")
        for name, values in figures["tables"].items():
            table.add_row(name, *(str(values[column]) for column in columns))
        console.print(table)
        for name, value in figures.items():
            if name not in ("tables", "differences", "unreadable", "problems"):
                console.print(f"{name}: {value}", markup=False, highlight=False)
        for name in ("differences", "unreadable", "problems"):
            for line in figures[name]:
                console.print(f"{name}: {line}", markup=False, highlight=False)

    def refused(self) -> int:
        """Count operations that a writer was told have failed."""
        return sum(answer.version is None for answer in self.watch.journals.answers.values())

    def _table(self, name: str, log: TableLog) -> dict[str, int]:
        model = self.watch.models[name]
        found = [one for one in self.watch.differences if one.table == name]
        return {
            "versions": log.version,
            "rewrites": sum(commit.ours for commit in log.commits),
            "rows": len(model.rows_at(log.version)),
            "live_files": len(log.live),
            "twice": max((one.twice for one in found), default=0),
            "missing": max((one.missing for one in found), default=0),
            "unexpected": max((one.unexpected for one in found), default=0),
            "changed": max((one.changed for one in found), default=0),
            "stray_ours": sum(stray.owner == "lakewright" for stray in log.stray),
            "stray_others": sum(stray.owner != "lakewright" for stray in log.stray),
            "removed_twice": log.removed_twice,
        }

    def _commits(self) -> Counter[str]:
        return self.watch.commits_by() + Counter({"lakewright": self.watch.rewrites()})

    def _accepted(self) -> dict[str, Counter[Action]]:
        accepted: dict[str, Counter[Action]] = {name: Counter() for name in (*DELTALAKE_WRITERS, SPARK_WRITER)}
        for model in self.watch.models.values():
            for nonce in model.found:
                accepted[nonce.rpartition("-")[0].rpartition("-")[0]][self.watch.journals.operations[nonce].action] += 1
        return accepted

    def _never_accepted(self) -> list[tuple[str, Action]]:
        return [
            (writer, action)
            for writer, counts in self._accepted().items()
            for action in Action
            if action is not Action.CREATE and not counts[action]
        ]

    def _all_errors(self) -> Iterable[str]:
        return (answer.error for answer in self.watch.journals.answers.values() if answer.version is None)

    def _errors(self) -> Counter[str]:
        return Counter(error[:ERROR_CHARS] for error in self._all_errors())

    def _conclude_disk(self) -> None:
        if self._at_release is None:
            self.not_shown.append("the disk was not filled")
            return
        commits = self._commits()
        for name in (*DELTALAKE_WRITERS, SPARK_WRITER, *(["lakewright"] if self.with_lakewright else [])):
            if commits[name] <= self._at_release[name]:
                self.problems.append(f"{name} has committed nothing since the disk was full")


def _summed(orphans: Mapping[str, Orphans]) -> dict[str, int]:
    return dict(sum((Counter(one.counts()) for one in orphans.values()), Counter()))


def _files(log: TableLog, kind: str) -> int:
    return sum(len(commit.files(kind)) for commit in log.commits if commit.ours)


def job_errors(log: str) -> Counter[str]:
    """Return how often an actor's log tells of each kind of failed job."""
    errors: Counter[str] = Counter()
    for record in _records(log, "job_failed"):
        errors[f"{record.get('verdict')}: {record.get('error', '')}"[:ERROR_CHARS]] += 1
    return errors


def _records(log: str, event: str) -> Iterator[dict[str, Any]]:
    for line in log.splitlines():
        if f'"{event}"' in line and line.startswith("{"):
            yield json.loads(line)


def progress(elapsed: float, verdict: Verdict) -> str:
    """Return one line on how it goes."""
    commits = " ".join(f"{name} {count}" for name, count in sorted(verdict.watch.commits_by().items()))
    watch = verdict.watch
    return (
        f"[{elapsed:5.0f} s] commits {commits}; refused {verdict.refused()}; rewrites {watch.rewrites()}; "
        f"faults {sum(verdict.faults.done.values())}; checks {sum(watch.checks.values())}; "
        f"differences {len(watch.differences) + len(watch.unreadable)}"
    )
