"""A decider that has met every kind of refusal of docs/refusals.md, and what people must be shown of each.

The kinds are those from which the page is generated: a rule or a reason that someone adds is met here as well.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import redis

from actor.queue_executor import SyncQueueExecutor, connect
from decider.formats.delta.metadata import LEAVE_TO_THE_CATALOG, REFUSED_FEATURES, UPDATE
from decider.store.tables.table_state import TableState
from decider.tracking.refresh import REMEDIES, UNREADABLE
from shared.errors import Corrupt, Difference, NoTable, RefusedFiles
from shared.formats import delta
from shared.partition_refusals import NOTHING, PartitionRefusals, TableFingerprint
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.queue import commands, keys
from shared.queue.model import RunResult
from shared.refusals import Refusal, RefusalReason
from shared.table import DataFile, TableMetadata, TableProtocol
from tests.support.delta_tables import HandTable
from tests.support.live_decider import LiveDecider
from tests.tools.refusals_page import table_refusals

RULE_OF_TEST = "test.refused-by"
"""Property of a table whose rule a test chooses, by its place among all of them."""

HELD_KIND = "cluster"
"""The kind of the job on the whole table that an actor refused."""

BY_RULE = delta.refusal


@dataclass(frozen=True)
class Shown:
    """A refusal: the table that has it, and texts that each place has to show of it. files: it is one of files."""

    table: str
    code: str
    texts: tuple[str, ...]
    files: bool = False


def every_refusal(decider: LiveDecider, folder: Path, redis_url: str) -> tuple[Shown, ...]:
    """Have a decider meet each kind of refusal."""
    with patch("shared.formats.delta.refusal", _chosen), patch("decider.formats.delta.replay.refusal", _chosen):
        tables = (*_by_rule(decider, folder), *_unreadable(decider, folder))
    return (*tables, *_of_files(decider, folder, redis_url))


def _chosen(metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
    number = metadata.configuration.get(RULE_OF_TEST)
    if number is None:
        return BY_RULE(metadata, protocol)
    return [refusal for _, refusal, _ in table_refusals()][int(number)]


def _by_rule(decider: LiveDecider, folder: Path) -> Iterator[Shown]:
    for number, (_, refusal, _) in enumerate(table_refusals()):
        name = f"rule-{number}"
        HandTable(folder / name, configuration={RULE_OF_TEST: str(number)}).append(2)
        decider.register(folder / name, name)
        yield Shown(name, refusal.code, (refusal.reason, refusal.action))


def _unreadable(decider: LiveDecider, folder: Path) -> Iterator[Shown]:
    """Yield tables that a reader refuses: for a feature, for damage, and because there is none any more."""
    later = "a-feature-of-tomorrow"
    for feature, texts in (
        *((name, (f"{name!r}", why, LEAVE_TO_THE_CATALOG)) for name, why in sorted(REFUSED_FEATURES.items())),
        (later, (f"{later!r}", UPDATE)),
    ):
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": [feature],
            "writerFeatures": [feature],
        }
        yield _registered(decider, HandTable(folder / f"by-{feature}", protocol=protocol), UNREADABLE, texts)
    mapped = HandTable(folder / "mapped-otherwise", configuration={"delta.columnMapping.mode": "other"})
    yield _registered(decider, mapped, UNREADABLE, ("delta.columnMapping.mode", UPDATE))
    damaged = HandTable(folder / "damaged")
    decider.register(damaged.path, "damaged")
    (damaged.path / "_delta_log" / f"{1:020d}.json").write_text("{")
    decider.sweep()
    decider.post("/v1/tables", {"location": str(folder / "gone"), "name": "gone"})
    decider.drain()
    yield Shown("damaged", "", (REMEDIES[Corrupt],))
    yield Shown("gone", "", (REMEDIES[NoTable],))


def _registered(decider: LiveDecider, table: HandTable, code: str, texts: tuple[str, ...]) -> Shown:
    decider.register(table.path, table.path.name)
    return Shown(table.path.name, code, texts)


def _of_files(decider: LiveDecider, folder: Path, redis_url: str) -> Iterator[Shown]:
    """Have an actor refuse a file for each reason, and a job on the table as a whole."""
    table = HandTable(folder / "of-files")
    table.append(12)
    name = decider.register(table.path, "of-files")
    id_ = decider.get(f"/v1/tables/{name}")["id"]
    client = redis.Redis.from_url(redis_url)
    state = TableState.decode(client.hgetall(keys.table_state("default", id_)))
    known = NOTHING.in_force(TableFingerprint.of(state.metadata, Policy()))
    for reason in RefusalReason:
        file = DataFile(f"{reason}.parquet", 1_000, WHOLE_TABLE)
        refused = RefusedFiles(f"an actor says: {reason}", reason=reason)
        known = known.added(refused, [file], Policy(), now_ms=1)
        yield Shown(name, reason, (file.path, str(refused), reason.remedy), files=True)
    known = known.after_job(HELD_KIND, Difference("column v differs"), 1, now_ms=1)
    yield Shown(name, RefusalReason.DIFFERENCE, ("column v differs", RefusalReason.DIFFERENCE.remedy), files=True)
    _report(known, redis_url)


def _report(known: PartitionRefusals, redis_url: str) -> None:
    queue = SyncQueueExecutor(connect(redis_url), "default")
    (claim,) = queue.run(commands.claim("default", worker="w", nonce="c", slots=1, lease_ms=60_000))
    end = {"run_result": RunResult.DONE, "cost_bytes": 0, "seen_version": claim.version, "refusals": known.encode()}
    queue.run(commands.finish("default", worker="w", nonce="f", id=claim.id, token=claim.token, **end))


def missing(refusals: Iterable[Shown], seen: str) -> list[tuple[str, str]]:
    """Return each table with a text that is not among what was seen of it."""
    return [(one.table, text) for one in refusals for text in one.texts if text not in seen]
