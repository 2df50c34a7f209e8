"""A decider and an actor around one partition with refused files, through any life.

Each file is tried once, no job is empty, and nothing is left to do for the other files.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import structlog
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from actor.ports import GroupOutcome, GroupStatus, LivePartition, RewriteOutcome
from actor.refused_files import RefusedInRun
from decider.decide.compaction import COMPACTION
from decider.decide.context import DecisionContext, KnownRefusals
from decider.decide.decision import Decision, Trigger, TriggerSource
from decider.decide.evaluate import evaluate
from decider.state.refused_partitions import RefusedPartitions
from shared import partition_refusals
from shared.errors import RefusedFiles
from shared.jobs.payload import JobPayload, PredictedCost
from shared.layout.partition_stats import stats_of_files
from shared.layout.planner import plan
from shared.partition_refusals import PartitionRefusals, TableFingerprint, file_id
from shared.policy.policy import MIB, Policy
from shared.refusals import RefusalReason
from shared.release import RELEASE
from shared.table import Commit, DataFile, PartitionKey, RemovedFile, TableMetadata, TableProtocol
from tests.support.examples import examples

POLICY = Policy(target_bytes=MIB, min_input_files=4)
KEY = PartitionKey("{}")
BAD = "bad"
SIZES = st.lists(st.integers(10_000, 300_000), max_size=6)
PROTOCOL = TableProtocol(1, 2)


class RefusedPartition(RuleBasedStateMachine):
    """Writers, a decider that sees every commit, and an actor that runs each job at once."""

    @initialize()
    def start(self) -> None:
        self.files: dict[str, DataFile] = {}
        self.made = 0
        self.version = 0
        self.stored = ""
        self.metadata = TableMetadata("u", (), {}, schema_digest="0")
        self.is_healed = False
        self.attempts: Counter[str] = Counter()

    @rule(good=SIZES, bad=SIZES)
    def commit(self, good: list[int], bad: list[int]) -> None:
        new = [self._file("", size) for size in good] + [self._file(BAD, size) for size in bad]
        self._change(new, ())

    @precondition(lambda self: self.files)
    @rule(at=st.integers(0, 1_000), count=st.integers(1, 3))
    def remove(self, at: int, count: int) -> None:
        names = sorted(self.files)
        self._change(
            (), [self.files[name] for name in dict.fromkeys(names[(at + n) % len(names)] for n in range(count))]
        )

    @rule(heals=st.booleans(), event=st.sampled_from(["schema", "properties", "release", "force"]))
    def lift(self, heals: bool, event: str) -> None:
        """One of the changes that lift every refusal; the engine may be able to rewrite the files by then."""
        self.is_healed = heals
        self.attempts.clear()
        counter = str(self.version + 1)
        if event == "schema":
            self.metadata = replace(self.metadata, schema_digest=counter)
        elif event == "properties":
            self.metadata = replace(self.metadata, configuration={"x": counter})
        elif event == "release":
            _set_release(f"9.{counter}.0")
        else:
            self.stored = ""
        self._change((), ())
        if heals:
            assert not self.stored
            assert not plan(KEY, tuple(self.files.values()), POLICY).groups, "all files are rewritten at once"
        self.is_healed = False

    @invariant()
    def each_file_was_tried_once_since_it_was_lifted(self) -> None:
        assert not self.attempts or max(self.attempts.values()) == 1

    @invariant()
    def what_is_remembered_is_live_and_what_is_left_needs_no_rewrite(self) -> None:
        known = PartitionRefusals.decode(self.stored)
        assert known.ids <= {file_id(name) for name in self.files}
        left = known.without(self.files.values())
        assert self._is_held(known) or not plan(KEY, left, POLICY).groups

    def _is_held(self, known: PartitionRefusals) -> bool:
        return known.blocks(self.version, is_automatic=True)

    def _file(self, prefix: str, size: int) -> DataFile:
        self.made += 1
        return DataFile(f"{prefix}f{self.made}", size, KEY, rows=size)

    def _change(self, added: Iterable[DataFile], removed: Iterable[DataFile]) -> None:
        """Commit, let the decider decide, and run its job."""
        gone = tuple(RemovedFile(file.path, None, file.size_bytes, KEY, tags=file.tags) for file in removed)
        for one in PartitionRefusals.decode(self.stored).refusals:
            if {refused.id for refused in one.files} & {file_id(file.path) for file in gone}:
                for refused in one.files:
                    self.attempts.pop(refused.id, None)
        for file in removed:
            del self.files[file.path]
        self.files |= {file.path: file for file in added}
        self.version += 1
        made = self._decide(Commit(self.version, 0, "WRITE", tuple(added), gone))
        if made.prediction is not None:
            self._run()

    def _decide(self, commit: Commit) -> Decision:
        found = RefusedPartitions.of([(KEY, self.stored)])
        after = found.after([commit], TableFingerprint.of(self.metadata, POLICY), self.version)
        for change in found.changes(after):
            self.stored = change.new
        context = replace(DecisionContext.of_policy(POLICY), refusals=KnownRefusals(after))
        state = stats_of_files(self.files.values(), POLICY.size_levels)
        return evaluate(context, KEY, state, Trigger(self.version, TriggerSource.DATA_CHANGE), COMPACTION)

    def _run(self) -> None:
        run = RefusedInRun(self.stored, lambda: 0, structlog.get_logger())
        payload = JobPayload("", "t", POLICY, "", PredictedCost(0, 0, 0))
        before, done = set(PartitionRefusals.decode(self.stored).ids), 0
        while True:
            live = LivePartition(self.version, self.metadata, PROTOCOL, tuple(self.files.values()))
            groups = plan(KEY, run.left(live, payload), POLICY).groups
            if not groups:
                break
            ends, version = [], None
            for group in groups:
                bad = tuple(file.path for file in group.files if file.path.startswith(BAD) and not self.is_healed)
                if bad:
                    self.attempts.update(map(file_id, bad))
                    error = RefusedFiles("no", reason=RefusalReason.TYPES, files=bad)
                    ends.append(GroupOutcome(group, GroupStatus.REFUSED, error=error))
                    continue
                assert before.isdisjoint(file_id(file.path) for file in group.files) or self.is_healed
                for file in group.files:
                    del self.files[file.path]
                new = self._file("", group.bytes)
                self.files[new.path] = new
                self.version = version = self.version + 1
                ends.append(GroupOutcome(group, GroupStatus.COMMITTED, (new,)))
            run.note(RewriteOutcome(version, tuple(ends), 0, 0), payload)
            done += 1
        assert done, "the job was empty"
        text = run.to_remember(self.version, 1)
        self.stored = self.stored if text is None else text

    def teardown(self) -> None:
        _set_release(RELEASE)


def _set_release(release: str) -> None:
    vars(partition_refusals)["RELEASE"] = release


def test_a_partition_with_refused_files_keeps_its_laws() -> None:
    laws = settings(max_examples=examples(0.6), stateful_step_count=40, deadline=None)
    run_state_machine_as_test(RefusedPartition, settings=laws)
