"""docs/refusals.md is written from the rules themselves, with one remedy per machine-readable reason.

`python -m tests.tools.refusals_page` prints the page. A reason without an entry here is a KeyError, so the page is
complete whenever it can be printed; a test compares it with the one in docs.
"""

import ast
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path

from decider.api.sns_confirmation import ConfirmationResult
from decider.decide.actions import ACTIONS
from decider.decide.checkpoint import CheckpointReason
from decider.decide.deduplicate import DeduplicateReason
from decider.decide.expire import ExpiryReason
from decider.decide.index import IndexReason
from decider.decide.vacuum import VacuumReason
from decider.events.table_hint import IgnoredReason
from decider.formats.delta.metadata import LEAVE_TO_THE_CATALOG, REFUSED_FEATURES, UPDATE
from decider.optimize.on_demand import RequestIgnored
from decider.optimize.property_trigger import TriggerOutcome
from decider.tracking.refresh import UNREADABLE
from shared.formats.delta import _KNOWN_REASONS as KNOWN
from shared.formats.delta import ALLOWED_VERSIONS, SAFE_FEATURES, XTABLE, refusal
from shared.formats.iceberg.names import (
    ENCRYPTION_KEY,
    FORMAT_VERSIONS,
    GENERATED_BY,
    MIXED_FORMAT,
    UNKNOWN_TRANSFORM,
    UNKNOWN_TYPE,
)
from shared.formats.iceberg.refusal import refusal as iceberg_refusal
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.names import LAST_REVISION, LEGACY_CUBE_TAG
from shared.formats.qbeast.status import refusal as index_refusal
from shared.layout.clustered_files import ClusterReason
from shared.layout.delete_files import DeleteFilesReason
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.manifest_files import ManifestReason
from shared.layout.sort_planner import SortReason
from shared.layout.statistics_age import StatisticsReason
from shared.partitions import WHOLE_TABLE
from shared.refusals import Refusal, RefusalCode, RefusalReason
from shared.table import DataFile, PartitionColumn, TableMetadata, TableProtocol
from tests.support.qbeast_tree import QbeastTree
from tests.tools.refusal_remedies import (
    CONFIRMATIONS,
    EVENTS,
    ICEBERG,
    INDEX,
    LOG,
    ON_DEMAND,
    READS,
    REASONS,
    REQUESTS,
    RULE,
    SNS,
    STARTED,
    TRIGGER,
    TRIGGERS,
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "refusals.md"

HEAD = """# Refusals

This page lists every reason why Lakewright does nothing for a table, a partition, a request or an event, where it is
decided, and what to do.
`lakewright tables show NAME` shows the refusal of a table, `lakewright tables decisions NAME` the reason of a decision.
"""

TABLES = """## Tables

The decider checks at every commit that changes metadata or protocol; the actor checks before it reads and before it
commits.
`--force` overrides none of these.
"""

FILES = """## Files

An actor refuses files that a rewrite could not store as they were. The other files of the partition are rewritten. No
job is queued for refused files until one of them is removed or replaced, the table's schema or properties change, a
newer release of Lakewright runs, or a person requests a run with `--force`. `lakewright tables show NAME` lists them
with the actor's message; `lakewright doctor`, `GET /v1/refused-files` and the page name them, too.
"""

STARTS_WORK = frozenset(
    {
        Reason.ELIGIBLE,
        IndexReason.SAMPLE,
        Reason.TOO_MANY_SMALL_FILES,
        Reason.REQUESTED,
        Reason.IDLE,
        Reason.SINGLE_FILE_REWRITE,
        Reason.FULL_REWRITE_DUE,
        Reason.COMMIT_COUNT_REACHED,
        Reason.DELETE_COUNT_REACHED,
        SortReason.TOO_DEEP,
        VacuumReason.FILES_EXPIRED,
        VacuumReason.ORPHANS_DUE,
        CheckpointReason.MANY_COMMITS,
        DeduplicateReason.ROWS_ADDED,
        ExpiryReason.TIME_WENT_ON,
        ClusterReason.UNCLUSTERED,
        ClusterReason.MANY_FILES,
        ClusterReason.HALF_A_RUN,
        ClusterReason.MANY_NEW,
        IndexReason.ELIGIBLE,
        IndexReason.NEW_FILES,
        ManifestReason.MANY,
        StatisticsReason.OLD,
        DeleteFilesReason.MANY,
        DeleteFilesReason.MANY_VALUES,
    }
)
"""Reasons of decisions that enqueue a job: no refusals."""

PARTITION_REASONS: tuple[type[DecisionReason], ...] = tuple(dict.fromkeys((Reason, *(one.reasons for one in ACTIONS))))
TABLE_REASONS: tuple[type[DecisionReason], ...] = tuple(one.reasons for one in ACTIONS.table_actions)
_REASON_TYPES = frozenset(kind.__name__ for kind in (*PARTITION_REASONS, *TABLE_REASONS))


def page() -> str:
    """Return the page as it has to be."""
    return "\n".join(
        (
            HEAD,
            TABLES,
            _table("reason | code | decided in | what to do", _tables()),
            "## Partitions\n",
            _table("reason | meaning | decided in | what to do", _decisions(PARTITION_REASONS)),
            FILES,
            _table("reason | meaning | decided in | what to do", _files()),
            "## Tables as a whole\n\n[Vacuum and checkpoints](storage.md), [clustering](clustering.md).\n",
            _table("reason | meaning | decided in | what to do", _decisions(TABLE_REASONS)),
            "## Requests\n\nOn-demand requests, and runs requested through `use.optimization.type`.\n",
            _table("reason | meaning | decided in | what to do", _requests()),
            "## Events\n",
            _table("reason | meaning | decided in | what to do", _events()),
        )
    )


def _tables() -> Iterator[tuple[str, ...]]:
    for kind, found, where in table_refusals():
        yield kind, f"`{found.code}`", f"`{where}`", found.action
    for feature, why in sorted(REFUSED_FEATURES.items()):
        yield f"feature `{feature}`: {why}", f"`{UNREADABLE}`", f"`{LOG}`", LEAVE_TO_THE_CATALOG
    yield "unknown reader feature or version", f"`{UNREADABLE}`", f"`{LOG}`", UPDATE
    for reason, code, where, remedy in READS:
        yield reason, code, f"`{where}`", remedy


def table_refusals() -> Iterator[tuple[str, Refusal, str]]:
    """Yield each kind of refusal of a table by a rule: what it is, the refusal, and the module that decides it."""
    found = (*_delta_refusals(), *_index_refusals(), *_iceberg_refusals())
    assert {refusal.code for _, refusal, _ in found} == set(RefusalCode)
    yield from found


def _delta_refusals() -> Iterator[tuple[str, Refusal, str]]:
    for feature in KNOWN:
        if feature not in REFUSED_FEATURES:  # Readers refuse these before, and say so below.
            yield f"feature `{feature}`: {KNOWN[feature][0]}", _of(writer=frozenset({feature})), RULE
    unknown = _of(writer=frozenset({"a-feature-that-is-not-known"}))
    yield "any other feature that is not on the list of safe features", unknown, RULE
    for kind, metadata, protocol in (
        (f"protocol version other than {ALLOWED_VERSIONS}", _metadata(), TableProtocol(9, 9)),
        (
            f"Delta log generated from another format by Apache XTable (`{XTABLE}` is set)",
            _metadata({XTABLE: "{}"}),
            TableProtocol(1, 2),
        ),
        (f"Qbeast index (`{LAST_REVISION}` is set)", _metadata({LAST_REVISION: "1"}), TableProtocol(1, 2)),
    ):
        yield kind, _some(refusal(metadata, protocol)), RULE


def _iceberg_refusals() -> Iterator[tuple[str, Refusal, str]]:
    for version, properties, kind in (
        (FORMAT_VERSIONS.stop, {}, f"Iceberg format version {FORMAT_VERSIONS.stop} or later"),
        (2, {ENCRYPTION_KEY: "k"}, f"encrypted Iceberg table (`{ENCRYPTION_KEY}` is set)"),
        (
            2,
            {f"{MIXED_FORMAT}table-store": "base"},
            f"Iceberg table in Amoro's mixed format (`{MIXED_FORMAT}*` is set)",
        ),
        *(
            (2, {name: "1"}, f"Iceberg metadata generated from another format by {generator} (`{name}` is there)")
            for name, generator in GENERATED_BY.items()
        ),
    ):
        yield kind, _some(iceberg_refusal(_metadata(properties), TableProtocol(version, version))), ICEBERG
    for feature, kind in (
        (f"{UNKNOWN_TRANSFORM}days", "partition transform that Iceberg's specification does not know"),
        (f"{UNKNOWN_TYPE}vector", "column of a type that Iceberg's specification does not know"),
    ):
        protocol = TableProtocol(2, 2, writer_features=frozenset({feature}))
        yield kind, _some(iceberg_refusal(_metadata(), protocol)), ICEBERG


def _index_refusals() -> Iterator[tuple[str, Refusal, str]]:
    made = QbeastTree(random.Random(0), cube_size=10)
    made.append(made.new_rows(1))
    plain = made.snapshot()
    column = PartitionColumn("d", "d", "date")
    legacy = DataFile("old", 1, WHOLE_TABLE, tags={LEGACY_CUBE_TAG: ""})
    for kind, snapshot in (
        ("that is partitioned", replace(plain, metadata=replace(plain.metadata, partition_columns=(column,)))),
        ("with files of the library before version 0.6", replace(plain, files=(legacy,))),
    ):
        found = _some(index_refusal(snapshot, QbeastIndex.of_snapshot(snapshot)))
        yield f"Qbeast index of a table {kind}", found, INDEX


def _some(found: Refusal | None) -> Refusal:
    assert found is not None
    return found


def _decisions(kinds: Sequence[type[DecisionReason]]) -> Iterator[tuple[str, ...]]:
    for reason in chain.from_iterable(kinds):
        if reason not in STARTS_WORK:
            yield f"`{reason}`", reason.message, ", ".join(f"`{path}`" for path in deciding(reason)), REASONS[reason]


def _files() -> Iterator[tuple[str, ...]]:
    for reason in RefusalReason:
        if places := refusing(reason):
            yield f"`{reason}`", reason.message, ", ".join(f"`{path}`" for path in places), reason.remedy


def refusing(reason: RefusalReason) -> tuple[str, ...]:
    """Return the modules that refuse files for this reason; one that none gives yet is not on the page."""
    return tuple(
        str(path.relative_to(ROOT))
        for folder in ("actor", "shared")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != ROOT / "shared" / "refusals.py" and f"RefusalReason.{reason.name}" in path.read_text()
    )


def deciding(reason: DecisionReason) -> tuple[str, ...]:
    """Return the modules with a function that gives this reason, and does not only compare with it."""
    return tuple(
        str(path.relative_to(ROOT))
        for folder in ("shared/layout", "decider/decide")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if f"{type(reason).__name__}.{reason.name}" in _given_reasons(path)
    )


@cache
def _given_reasons(path: Path) -> frozenset[str]:
    """Return the reasons, as `Type.NAME`, that functions and constants of a module give."""
    tree = ast.parse(path.read_text())
    compared = {part for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    given = (part for one in functions for part in ast.walk(one) if part not in compared)
    constants = (node.value for node in tree.body if isinstance(node, ast.Assign) if isinstance(node.value, ast.Call))
    parts = chain(given, (part for value in constants for part in ast.walk(value)))
    return frozenset(
        f"{part.value.id}.{part.attr}"
        for part in parts
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in _REASON_TYPES
    )


def _requests() -> Iterator[tuple[str, ...]]:
    for one in RequestIgnored:
        yield f"`{one}`", one.message, f"`{ON_DEMAND}`", REQUESTS[one]
    for two in TriggerOutcome:
        if two not in STARTED:
            yield f"`{two}`", two.message, f"`{TRIGGER}`", TRIGGERS[two]


def _events() -> Iterator[tuple[str, ...]]:
    for reason in IgnoredReason:
        meaning, where, remedy = EVENTS[reason]
        yield f"`{reason}`", meaning, f"`{where}`", remedy
    for result in ConfirmationResult:
        if result is not ConfirmationResult.CONFIRMED:
            meaning, remedy = CONFIRMATIONS[result]
            yield f"`{result}`", meaning, f"`{SNS}`", remedy


def _table(heads: str, rows: Iterator[tuple[str, ...]]) -> str:
    lines = [f"| {heads} |", "|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _metadata(configuration: Mapping[str, str] | None = None) -> TableMetadata:
    return TableMetadata("id", configuration=configuration or {})


def _of(*, writer: frozenset[str]) -> Refusal:
    assert not writer & SAFE_FEATURES
    found = refusal(_metadata(), TableProtocol(3, 7, frozenset(), writer))
    assert found is not None
    return found


if __name__ == "__main__":
    print(page(), end="")
