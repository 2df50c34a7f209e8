"""The laboratory on Delta tables: writers, model, readers and log are the soak's. Writers are killed, too."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from deltalake import CommitProperties, DeltaTable

from tests.jepsen.lab import POLICY, Lab
from tests.jepsen.rival import BY_SPARK, Place, Rival
from tests.jepsen.seen import SAMPLES
from tests.soak.checker import Difference, broken_answers
from tests.soak.deltalake_writer import arrow
from tests.soak.household import DELTALAKE_WRITERS, SERVICES, SPARK_WRITER, START_S, Household
from tests.soak.journal import Journals
from tests.soak.log import Commit
from tests.soak.operations import Action
from tests.soak.tables import spec_of
from tests.soak.watch import Watch
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack
from tests.support.waiting import comes_true, until

SPECS = tuple(spec_of(name) for name in ("edges", "dates"))
"""Tables whose paths every engine spells alike: what they make of others is told by the soak and by `make interop`."""

WRITERS = DELTALAKE_WRITERS[:2]
PAUSE_S = 0.5
"""Of a writer, so that a compactor that takes seconds does not lose each race."""
END_S = 60.0


def is_rewrite(commit: Commit) -> bool:
    """Whether a commit is a compactor's: ours, or one that its engine calls OPTIMIZE."""
    return commit.ours or commit.info.get("operation") == "OPTIMIZE"


def rows_in(differences: list[Difference]) -> dict[str, int]:
    """Return the rows of each kind of harm: of each table the most that one read found."""
    kinds = {"lost": "missing", "revived": "unexpected", "doubled": "twice", "changed": "changed"}
    tables = {one.table for one in differences}
    return {
        harm: sum(max(getattr(one, name) for one in differences if one.table == table) for table in tables)
        for harm, name in kinds.items()
    }


class OnDelta(Lab):
    """Two tables, which two processes with deltalake write to, or one with Spark."""

    def __init__(self, rival: Rival | None, redis: RedisServer, folder: Path, seed: int, writers: str) -> None:
        options = ["--pause-s", str(PAUSE_S), "--only", *(spec.name for spec in SPECS)]
        options += ["--leave-out", Action.OPTIMIZE, "--spark-conf", *(rival.spark_conf if rival else ())]
        stack = Stack(folder, redis, {**SERVICES, "LAKEWRIGHT_POLICY": POLICY})
        home = Household(stack, seed, rival is not None and rival.is_ours, tuple(options), specs=SPECS)
        super().__init__(rival, Place(home, [str(stack.tables / spec.place) for spec in SPECS]), seed)
        self._writers = (SPARK_WRITER,) if writers == BY_SPARK else WRITERS
        self._started: Counter[str] = Counter()
        stack.tables.mkdir()
        self._watch = Watch(stack.tables, folder, Journals(folder), SPECS, is_rewrite=is_rewrite, has_spark=False)

    def create(self) -> None:
        for spec in SPECS:
            DeltaTable.create(
                (self.home.stack.tables / spec.place).as_uri(),
                arrow(spec, ()).schema,
                partition_by=list(spec.by),
                configuration=spec.configuration,
                raise_if_key_not_exists=False,
                commit_properties=CommitProperties(custom_metadata={"soak": "create"}),
            )

    def start_writers(self) -> None:
        for name in self._writers:
            self._start(name)
        if SPARK_WRITER in self._writers:
            ready = self.home.folder / f"{SPARK_WRITER}.ready"
            until("Spark is ready", lambda: ready.exists() or self.home.raise_if_ended(SPARK_WRITER), seconds=START_S)

    def end_writers(self) -> None:
        running = [self.home.running[name] for name in self._writers]
        comes_true(lambda: not any(one.alive for one in running), seconds=END_S)

    def look(self) -> None:
        self._watch.check_one(self.random)

    def statements(self) -> int:
        return len(self._watch.journals.answers)

    def rewrites(self) -> int:
        return sum(map(is_rewrite, self._commits()))

    def faults_of_writers(self) -> Sequence[Callable[[], None]]:
        """Return the killing of one, once all of them write; Spark is left alone, for its start is not cheap."""
        journals = self.home.folder.glob("*.journal")
        write = Counter(one.name.rpartition("-")[0] for one in journals if one.stat().st_size)
        ready = all(write[name] == self._started[name] for name in self._writers)
        return (self._kill_writer,) if ready and SPARK_WRITER not in self._writers else ()

    def judge(self) -> None:
        watch, seen = self._watch, self.seen
        for spec in SPECS:
            watch.check_all(spec)
        broken = [problem for model in watch.models.values() for problem in model.problems]
        broken += broken_answers(watch.journals, watch.models)
        for name, log in watch.logs.items():
            broken += [f"{name}: version {one} was replaced" for one in log.changed_commits()]
            broken += [f"{name}: {problem}" for problem in log.broken]
        for harm, rows in rows_in(watch.differences).items():
            setattr(seen, harm, rows)
        seen.unreadable, seen.broken = len(watch.unreadable), len(broken)
        seen.samples = [*map(str, watch.differences), *watch.unreadable, *broken][:SAMPLES]
        answers = watch.journals.answers.values()
        seen.statements, seen.aborted = len(answers), sum(one.version is None for one in answers)
        for commit in self._commits():
            seen.count(is_rewrite=is_rewrite(commit), size=sum(add["size"] for add in commit.files("add")))

    def _start(self, name: str) -> None:
        self.home.start_writer(name)
        self._started[name] += 1

    def _commits(self) -> list[Commit]:
        return [commit for log in self._watch.logs.values() for commit in log.commits]

    def _kill_writer(self) -> None:
        name = self.random.choice(self._writers)
        self.home.kill(name)
        self._start(name)
        self.seen.faults["writer killed"] += 1
