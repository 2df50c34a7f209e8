"""What pages say of limits in sentences is written here once more with the code's own constants: a change of one fails.

Tables that are generated from code have tests of their own; figures that were measured belong to `docs/benchmarks.md`.
"""

import re
from pathlib import Path

import pytest

from actor.formats.delta.checkpoint_writer import MAX_FILES_HERE
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS as COPY
from actor.heartbeat import LeaseTimes
from actor.vacuum.steps import VacuumLimits
from decider.api.routes import what_if
from decider.api.routes.stream import MAX_TABLES
from decider.background.auto_analyze import MAX_COMMITS as ADVICE_COMMITS
from decider.background.auto_analyze import MAX_FILES as ADVICE_FILES
from decider.background.queue_upkeep import PREEMPTION_EVERY_S
from decider.decide.calibration import MOST_READ_STEPS
from decider.decide.company import WAIT_COMMITS
from decider.events.refresh_queue import EVENTS_PER_SWEPT, FAILED_REFRESH, MAX_SWEPT
from decider.events.resolver import MAX_PROBES_PER_DELIVERY
from decider.events.table_hint import MAX_BATCH
from decider.formats.delta.log import MAX_CHECKPOINT_BYTES
from decider.gateway.authentication import FAILURES_PER_S
from decider.gateway.credentials import MAX_SECRETS
from decider.gateway.rate_limit import BURST_S
from decider.gateway.signatures import MAX_REMEMBERED
from decider.optimize.on_demand import MAX_JOBS
from decider.state.level_fit import MIN_COMMITS, WINDOW_COMMITS
from decider.storage.local_files import MAX_OBJECT_BYTES
from decider.storage.reading_threads import READ_DEADLINE_S
from decider.storage.stores import MAX_RETRIES, RETRY_FOR_S
from decider.store.registry import saved_registry
from decider.store.samples import KEPT, SampleStep
from decider.store.urgent_jobs import URGENT_PER_HOUR
from decider.tracking.index_reader import RECENT_COMMITS
from decider.tracking.refresh import VANISHED_DAYS
from decider.whatif import trace_reader
from shared.formats.iceberg.avro_limits import MAX_DEPTH
from shared.layout.key_depth import MAX_BUCKETS
from shared.partition_refusals import FIRST_HOLD, LONGEST_HOLD, MAX_BYTES
from shared.queue.admin_commands import Preemption
from shared.queue.limits import LEDGER_KEPT, LEDGER_KEPT_TO_ARCHIVE, MAX_FORESEEN

ROOT = Path(__file__).resolve().parents[3]
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
WORDS = {2: "two", 3: "three", 5: "five", 8: "eight", 9: "ninth", 20: "20"}
TIMES = {2: "twice"}
MINUTES = {60: "a minute"}
PREEMPT, LEASE = Preemption(), LeaseTimes()
VANISHED = f"{VANISHED_DAYS:.0f} days"
REPLAYED = re.findall(r"int MAX_COMMITS = (\d+);", (ROOT / "actor/java/io/lakewright/delta/LogReplay.java").read_text())
HOLDS = f"{FIRST_HOLD}, {2 * FIRST_HOLD}, {4 * FIRST_HOLD}, ... at most {LONGEST_HOLD:,} commits"

STATED = [
    ("docs/tables.md", f"after {VANISHED} it is unregistered"),
    ("docs/refusals.md", f"after {VANISHED} it is unregistered"),
    ("docs/unity.md", f"unregistered after {VANISHED}"),
    (
        "docs/tables.md",
        f"up to {FAILED_REFRESH.longest_s:.0f} s (with jitter), {WORDS[FAILED_REFRESH.max_attempts or 0]} tries in all",
    ),
    ("docs/rules.md", f"up to {FAILED_REFRESH.longest_s:.0f} s, {FAILED_REFRESH.max_attempts} tries in all"),
    ("docs/tables.md", f"at most {MAX_BYTES // KIB} KiB for each"),
    ("docs/rules.md", f"after {HOLDS}"),
    ("docs/rules.md", f"for {HOLDS}"),
    (
        "docs/storage.md",
        f"in batches of {VacuumLimits().batch}, at most {VacuumLimits().files_per_s:.0f} files a second",
    ),
    ("docs/storage.md", f"up to {MAX_FILES_HERE:,} files is written in the driver"),
    ("docs/rewrites.md", f"smaller than {COPY.min_row_group_bytes // MIB} MiB on average"),
    ("docs/rewrites.md", f"less than {COPY.min_column_chunk_bytes // KIB} KiB for each leaf column"),
    ("docs/rewrites.md", f"smaller than {COPY.min_row_group_bytes_with_vectors // MIB} MiB on average"),
    ("docs/rewrites.md", f"more than {COPY.max_dictionary_share:.0%} of a final output would be dictionaries"),
    ("docs/rewrites.md", f"more than {COPY.max_column_chunks:,} column chunks"),
    ("docs/queue.md", f"Every {WORDS[int(PREEMPTION_EVERY_S)]} seconds: if a job of a strict band"),
    ("docs/queue.md", f"has waited for {PREEMPT.max_wait_ms // 1000} s since it was ready"),
    (
        "docs/queue.md",
        f"at least {PREEMPT.min_run_ms // 1000} s, was preempted fewer than {TIMES[PREEMPT.max_preemptions]}",
    ),
    ("docs/queue.md", f"after {LEASE.stop_grace_s:.0f} s its Spark jobs are cancelled"),
    ("docs/queue.md", f"for the length of its lease ({LEASE.lease_s:.0f} s)"),
    ("docs/rules.md", f"{LEASE.lease_s:.0f} s without a heartbeat (every {LEASE.interval_s:.0f} s)"),
    ("docs/deciding.md", f"the last {WINDOW_COMMITS} commits that changed data"),
    ("docs/deciding.md", f"fewer than {MIN_COMMITS} commits has none"),
    ("docs/deciding.md", f"after the time of about {WORDS[WAIT_COMMITS]} of the table's commits"),
    (
        "docs/deciding.md",
        f"the newest {trace_reader.MAX_COMMITS:,} commits of a location ({what_if.MAX_COMMITS:,} by name)",
    ),
    ("docs/deciding.md", f"{ADVICE_FILES:,} files is not"),
    ("docs/rules.md", f"the newest {ADVICE_COMMITS} commits"),
    (
        "docs/monitoring.md",
        f"a minute for a day, and one an hour for {KEPT[SampleStep.HOUR] // 24} days",
    ),
    ("docs/settings.md", "the newest thousand of each table"),
    ("docs/object-stores.md", f"up to {WORDS[MAX_RETRIES]} times within {RETRY_FOR_S} seconds"),
    ("docs/page.md", f"the next {MAX_FORESEEN} jobs"),
    ("docs/qbeast.md", f"the newest {RECENT_COMMITS} commits"),
    ("docs/cli.md", f"more than {MAX_TABLES} of them"),
    ("docs/deploy.md", f"the newest {saved_registry.KEPT} are kept"),
    ("docs/deciding.md", f"the newest {LEDGER_KEPT_TO_ARCHIVE:,} per table"),
    ("docs/architecture.md", f"8 MiB in at most {REPLAYED[0]} commits"),
    ("docs/rules.md", f"{URGENT_PER_HOUR} per tenant and hour"),
    ("docs/rules.md", f"at most {MAX_JOBS:,} jobs"),
    (
        "SECURITY.md",
        f"up to {MAX_OBJECT_BYTES // MIB} MiB ({MAX_CHECKPOINT_BYTES // GIB} GiB for a part of a checkpoint)",
    ),
    ("SECURITY.md", f"a read has {MINUTES[READ_DEADLINE_S]}"),
    ("docs/rules.md", f"is at most {MAX_DEPTH} levels deep"),
    ("docs/rules.md", f"in {MAX_BUCKETS} buckets"),
    ("docs/queue.md", f"from 1/{2**MOST_READ_STEPS} to {2**MOST_READ_STEPS}"),
    ("docs/rules.md", f"at most {MAX_PROBES_PER_DELIVERY} per delivery"),
    (
        "docs/rules.md",
        f"every {WORDS[EVENTS_PER_SWEPT + 1]} time one of the sweep, of which at most {MAX_SWEPT:,}",
    ),
    ("docs/rules.md", f"under any of up to {MAX_SECRETS} secrets"),
    ("docs/rules.md", f"at most {MAX_REMEMBERED:,} are stored"),
    ("docs/rules.md", f"each with up to {MAX_BATCH:,} events"),
    ("docs/rules.md", f"bursts of {BURST_S:.0f} s; {FAILURES_PER_S:.0f} invalid credentials/s"),
]


@pytest.mark.parametrize(("page", "text"), STATED)
def test_a_page_states_the_limit_that_the_code_has(page: str, text: str) -> None:
    found = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert text.casefold() in found.casefold()


def test_the_newest_thousand_decisions_are_kept() -> None:
    assert LEDGER_KEPT == 1_000
