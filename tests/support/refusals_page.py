"""docs/refusals.md is written from the rules themselves, with one remedy per machine-readable reason.

`python -m tests.support.refusals_page` prints the page. A reason without an entry here is a KeyError, so the page is
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
from decider.decide.index import IndexReason
from decider.decide.set_properties import PropertiesReason
from decider.decide.vacuum import VacuumReason
from decider.events.table_hint import IgnoredReason
from decider.formats.delta.metadata import REFUSED_FEATURES
from decider.optimize.on_demand import RequestIgnored
from decider.optimize.property_trigger import TriggerOutcome
from decider.tracking.refresh import UNREADABLE
from shared.formats.delta import _KNOWN_REASONS as KNOWN
from shared.formats.delta import ALLOWED_VERSIONS, SAFE_FEATURES, refusal
from shared.formats.iceberg.names import ENCRYPTION_KEY, FORMAT_VERSIONS, GENERATED_BY, MIXED_FORMAT
from shared.formats.iceberg.refusal import refusal as iceberg_refusal
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.names import LAST_REVISION, LEGACY_CUBE_TAG
from shared.formats.qbeast.refusal import DELETION_VECTORS
from shared.formats.qbeast.status import refusal as index_refusal
from shared.layout.clustered_files import ClusterReason
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.manifest_files import ManifestReason
from shared.layout.sort_planner import SortReason
from shared.partitions import WHOLE_TABLE
from shared.refusals import Refusal, RefusalCode
from shared.table import DataFile, PartitionColumn, TableMetadata, TableProtocol
from tests.support.qbeast_tree import QbeastTree

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
        ClusterReason.UNCLUSTERED,
        ClusterReason.MANY_FILES,
        IndexReason.ELIGIBLE,
        ManifestReason.MANY,
    }
)
"""Reasons of decisions that enqueue a job: no refusals."""

RULE = "shared/formats/delta.py"
LOG = "decider/formats/delta/metadata.py"
REFRESH = "decider/tracking/refresh.py"
BOUNDARY = "shared/boundary.py"
PREFLIGHT = "actor/formats/delta/preflight.py"
LOG_READER = "decider/formats/delta/log.py"
CONDITIONAL_PUT = "actor/formats/delta/conditional_put.py"
OUTPUT_FORMAT = "actor/formats/delta/output_format.py"
WRITE = "actor/formats/delta/write.py"
ICEBERG = "shared/formats/iceberg/refusal.py"
INDEX = "shared/formats/qbeast/status.py"
ICEBERG_METADATA = "shared/formats/iceberg/metadata.py"
CATALOGS = "decider/formats/iceberg/catalogs.py"
UNITY = "shared/unity/table_info.py"
UNITY_NAME = "decider/formats/delta/named_table.py"
ICEBERG_FOLDERS = "actor/formats/iceberg/catalogs.py"
ENGINE = "Run OPTIMIZE in the table's own engine"

READS: tuple[tuple[str, str, str, str], ...] = (
    ("the log has a gap that no checkpoint covers, or is damaged", "none", LOG_READER, "Restore the missing log files"),
    ("data files in another format than Parquet", "none", LOG, "Nothing; only Parquet is read"),
    ("a column mapping mode other than none, name and id", "none", LOG, "Update Lakewright"),
    (
        "there is no table at the location",
        "none; `missing` is true",
        REFRESH,
        "Restore or recreate the table; after 7 days it is unregistered",
    ),
    (
        "the location, its log or a data file lies outside the allowed roots",
        "none",
        BOUNDARY,
        "Extend `LAKEWRIGHT_ROOTS`, deep-clone the table, or set `LAKEWRIGHT_ALLOW_EXTERNAL_FILES=true`",
    ),
    (
        "the table is on S3 and the actors do not allow it",
        "none",
        PREFLIGHT,
        "Give every writer a log store with conditional puts ([how](object-stores.md)), then set `LAKEWRIGHT_ALLOW_S3`",
    ),
    (
        "the table was dropped and created again after the decision",
        "none",
        PREFLIGHT,
        "Nothing; the decider decides on the new table",
    ),
    (
        "the S3 server replaces an object despite the condition `If-None-Match: *`",
        "none",
        CONDITIONAL_PUT,
        "Use a server with conditional puts ([how](object-stores.md)): without them a commit can be lost",
    ),
    ("a view of an Iceberg catalog", f"`{UNREADABLE}`", CATALOGS, "Register the tables that it reads"),
    (
        "a view, or a table in another format than Delta, by its name in a Unity catalog",
        f"`{UNREADABLE}`",
        UNITY,
        "Register only Delta tables by name ([Unity](unity.md))",
    ),
    (
        "a table for which a Unity catalog has a property of catalog-managed commits",
        f"`{UNREADABLE}`",
        UNITY,
        "Let the catalog optimize the table",
    ),
    (
        "a table of a Unity catalog outside of the catalog's `locations`",
        f"`{UNREADABLE}`",
        UNITY,
        "Extend `locations` ([when](unity.md#which-locations-are-allowed))",
    ),
    (
        "a table of a Unity catalog below a root of paths",
        f"`{UNREADABLE}`",
        UNITY_NAME,
        "Register the table by its location, or remove that root",
    ),
    ("the metadata of an Iceberg table are damaged", "none", ICEBERG_METADATA, "Restore the metadata files"),
    (
        "an Iceberg table without a catalog, if these are not allowed",
        "none",
        ICEBERG_FOLDERS,
        "Use a catalog, or set `LAKEWRIGHT_ICEBERG_FOLDERS=true` ([when](iceberg.md))",
    ),
    ("values finer than microseconds, which Spark would truncate", "none", OUTPUT_FORMAT, ENGINE),
    (
        "a rewrite would change how values are stored: a physical type, a null, a field id",
        "none",
        OUTPUT_FORMAT,
        ENGINE,
    ),
    (
        "files of one partition store its value in several spellings, which readers take for different values",
        "none",
        WRITE,
        "Nothing; the other files of the table are merged",
    ),
)
"""Refusals of single reads: reason, code, where it is decided, and the remedy."""

REASONS: Mapping[DecisionReason, str] = {
    Reason.NO_NEIGHBORS: "Nothing; the files between them are full, or of another time window",
    SortReason.WITHIN_DEPTH: "Nothing; lower `lakewright.max-depth` to sort earlier",
    SortReason.NO_SORT_ORDER: "Set `lakewright.sort-by` or `lakewright.zorder-by` in the table's own properties",
    SortReason.CURVE_OF_OTHERS: "Run `OPTIMIZE ... ZORDER BY` in the table's own engine",
    Reason.DISABLED: "Set `lakewright.enabled=true`",
    Reason.SWITCHED_OFF: "Set the action's own property, such as `lakewright.vacuum=on`, or request a run",
    Reason.NOT_FOR_FORMAT: "Use the engine's own procedures ([Iceberg](iceberg.md#not-built))",
    Reason.CLUSTERED_TABLE: "Nothing; [clustering](clustering.md) does what compaction does elsewhere",
    Reason.INDEXED_TABLE: "Nothing; the [index](qbeast.md) is optimized by its own library",
    Reason.OWN_COMMIT: "Nothing",
    Reason.NO_DATA_CHANGE: "Nothing",
    Reason.NO_SMALL_FILES: "Nothing",
    Reason.WITHIN_TOLERANCE: "Lower `lakewright.tolerance` or `lakewright.max-small-files`, or use `--force`",
    Reason.NO_PROMOTION: "Nothing; lower `lakewright.min-input-files` to merge earlier",
    Reason.ALREADY_COMPACTED: "Nothing",
    Reason.FILTERED: "Change `lakewright.filter`",
    Reason.DEFERRED_TO_WRITERS: "Set `lakewright.dml-policy` to `defer` or `always`",
    Reason.REFUSED: "See the table's refusal, under Tables",
    Reason.CLUSTERED: "Run `OPTIMIZE ... ZORDER BY` in the table's own engine",
    VacuumReason.NOTHING_EXPIRED: "Nothing; to delete earlier, lower every [retention](storage.md#retention)",
    VacuumReason.VACUUMED_RECENTLY: "Nothing; lower `lakewright.vacuum-every` to delete more often",
    DeduplicateReason.NO_ROWS_ADDED: "Nothing",
    DeduplicateReason.COMPARED_RECENTLY: "Nothing; lower `lakewright.deduplicate-every` to remove rows more often",
    ClusterReason.NOTHING: "Nothing",
    ClusterReason.FEW_FILES: "Nothing; lower `lakewright.min-input-files` to cluster earlier",
    ClusterReason.BELOW_THRESHOLD: "Nothing; lower `lakewright.cluster-threshold` to cluster earlier",
    ClusterReason.NOT_CLUSTERED: "Set `CLUSTER BY`, or unset `lakewright.cluster`",
    IndexReason.NOTHING_ELIGIBLE: "Nothing",
    IndexReason.DOUBLED: "Stop the writers, check the rows, and `RESTORE` the version that the decision names "
    "([Qbeast](qbeast.md#what-is-guaranteed)); afterwards let only one optimizer rewrite the table",
    IndexReason.REFUSED: "Follow the remedy that `lakewright tables index` shows",
    IndexReason.NOT_INDEXED: "Unset `lakewright.index`",
    CheckpointReason.FEW_COMMITS: "Nothing; lower `lakewright.checkpoint-every` for more checkpoints",
    CheckpointReason.NOT_KNOWN: "Nothing; the next timer reads it again",
    ManifestReason.FEW: "Nothing; lower `lakewright.rewrite-manifests-at` to rewrite earlier",
    PropertiesReason.ONLY_ON_REQUEST: "Nothing; apply the advice with `lakewright advice apply`",
    ManifestReason.MANIFESTS_NOT_KNOWN: "Nothing; unset `lakewright.rewrite-manifests-at` on Delta tables",
}
"""What to do about each reason that leaves a partition, or a table as a whole, as it is."""

PARTITION_REASONS: tuple[type[DecisionReason], ...] = tuple(dict.fromkeys((Reason, *(one.reasons for one in ACTIONS))))
TABLE_REASONS: tuple[type[DecisionReason], ...] = tuple(one.reasons for one in ACTIONS.table_actions)
_REASON_TYPES = frozenset(kind.__name__ for kind in (*PARTITION_REASONS, *TABLE_REASONS))

ON_DEMAND = "decider/optimize/on_demand.py"
REQUESTS: Mapping[RequestIgnored, str] = {
    RequestIgnored.NOTHING_TO_DO: "See `reasons` of the response",
    RequestIgnored.ALREADY_RUNNING: "Wait for the running jobs",
    RequestIgnored.DISABLED: "Repeat the request with `force`",
    RequestIgnored.REFUSED: "See the table's refusal, under Tables",
}

TRIGGER = "decider/optimize/property_trigger.py"
STARTED = frozenset({TriggerOutcome.PENDING, TriggerOutcome.STARTED})
TRIGGERS: Mapping[TriggerOutcome, str] = {
    TriggerOutcome.AUTO_IS_ON: "Set `lakewright.enabled=false` for manual runs only",
    TriggerOutcome.ALREADY_RUNNING: "Wait for the running jobs",
    TriggerOutcome.NOTHING_TO_DO: "Nothing",
    TriggerOutcome.FIRST_SIGHT: "Unset the property and set it again",
    TriggerOutcome.REFUSED: "See the table's refusal, under Tables",
    TriggerOutcome.PROPERTY_REMOVED: "Set the property to start a run",
}

FORMATS = "decider/events/formats"
RESOLVER = "decider/events/resolver.py"
EVENTS: Mapping[IgnoredReason, tuple[str, str, str]] = {
    IgnoredReason.NOT_A_COMMIT: ("not a commit event", FORMATS, "Filter such events at their source"),
    IgnoredReason.UNKNOWN_EVENT: ("unknown event type", FORMATS, "Filter such events at their source"),
    IgnoredReason.TEST_EVENT: ("test event of the source", FORMATS, "Nothing"),
    IgnoredReason.BAD_KEY: ("object key that cannot be a table location", FORMATS, "Rename the table's folder"),
    IgnoredReason.BAD_NAME: ("catalog name that cannot be a table name", FORMATS, "Register the table by location"),
    IgnoredReason.NOT_A_LOCATION: ("text that is neither a table name nor a URI", FORMATS, "Correct the sender"),
    IgnoredReason.ICEBERG: (
        "metadata file of an Iceberg table that this decider has not read",
        RESOLVER,
        "Connect its catalog; the sweep finds the commit",
    ),
    IgnoredReason.UNKNOWN_TABLE: ("unknown table name", RESOLVER, "Register the table under that name"),
    IgnoredReason.OUTSIDE_ROOTS: ("location outside the allowed roots", RESOLVER, "Extend `LAKEWRIGHT_ROOTS`"),
    IgnoredReason.UNKNOWN_LIMIT: (
        "too many unknown locations in one delivery, or too many being probed",
        RESOLVER,
        "Nothing; the next event or discovery finds the table",
    ),
    IgnoredReason.NO_TABLE: ("no table at the location", RESOLVER, "Create the table, or correct the sender"),
    IgnoredReason.UNREADABLE: ("unreadable location", RESOLVER, "Check `LAKEWRIGHT_STORE_OPTIONS` and the credentials"),
}

SNS = "decider/api/sns_confirmation.py"
CONFIRMATIONS: Mapping[ConfirmationResult, tuple[str, str]] = {
    ConfirmationResult.NOT_LISTED: ("topic not allowed", "Add its ARN to `LAKEWRIGHT_SNS_TOPICS`"),
    ConfirmationResult.BAD_URL: ("confirmation URL of another host", "Nothing; the request is forged"),
}


def page() -> str:
    """Return the page as it has to be."""
    return "\n".join(
        (
            HEAD,
            TABLES,
            _table("reason | code | decided in | what to do", _tables()),
            "## Partitions\n",
            _table("reason | meaning | decided in | what to do", _decisions(PARTITION_REASONS)),
            "## Tables as a whole\n\n[Vacuum and checkpoints](storage.md), [clustering](clustering.md).\n",
            _table("reason | meaning | decided in | what to do", _decisions(TABLE_REASONS)),
            "## Requests\n\nOn-demand requests, and runs requested through `use.optimization.type`.\n",
            _table("reason | meaning | decided in | what to do", _requests()),
            "## Events\n",
            _table("reason | meaning | decided in | what to do", _events()),
        )
    )


def _tables() -> Iterator[tuple[str, ...]]:
    for feature in KNOWN:
        found = _of(writer=frozenset({feature}))
        if feature in REFUSED_FEATURES:
            continue  # Readers refuse it before, and say so below.
        yield f"feature `{feature}`: {KNOWN[feature][0]}", f"`{found.code}`", f"`{RULE}`", found.action
    unknown = _of(writer=frozenset({"a-feature-that-is-not-known"}))
    yield "any other feature that is not on the list of safe features", f"`{unknown.code}`", f"`{RULE}`", unknown.action
    protocol = refusal(_metadata(), TableProtocol(9, 9))
    assert protocol is not None
    yield f"protocol version other than {ALLOWED_VERSIONS}", f"`{protocol.code}`", f"`{RULE}`", protocol.action
    qbeast = refusal(_metadata({LAST_REVISION: "1"}), TableProtocol(1, 2))
    assert qbeast is not None
    yield f"Qbeast index (`{LAST_REVISION}` is set)", f"`{qbeast.code}`", f"`{RULE}`", qbeast.action
    yield from _indexes()
    assert {found.code, unknown.code, protocol.code, qbeast.code} == set(RefusalCode)
    for version, properties, kind in (
        (FORMAT_VERSIONS.stop, {}, f"Iceberg format version {FORMAT_VERSIONS.stop} or later"),
        (2, {ENCRYPTION_KEY: "k"}, f"encrypted Iceberg table (`{ENCRYPTION_KEY}` is set)"),
        (
            2,
            {f"{MIXED_FORMAT}table-store": "base"},
            f"Iceberg table in Amoro's mixed format (`{MIXED_FORMAT}*` is set)",
        ),
        *(
            (2, {name: "1"}, f"Iceberg metadata generated from another format by {generator} (`{name}` is set)")
            for name, generator in GENERATED_BY.items()
        ),
    ):
        iceberg = iceberg_refusal(_metadata(properties), TableProtocol(version, version))
        assert iceberg is not None
        yield kind, f"`{iceberg.code}`", f"`{ICEBERG}`", iceberg.action
    for feature, why in sorted(REFUSED_FEATURES.items()):
        yield f"feature `{feature}`: {why}", f"`{UNREADABLE}`", f"`{LOG}`", "Let the catalog optimize the table"
    yield "unknown reader feature or version", f"`{UNREADABLE}`", f"`{LOG}`", "Update Lakewright"
    for reason, code, where, remedy in READS:
        yield reason, code, f"`{where}`", remedy


def _indexes() -> Iterator[tuple[str, ...]]:
    made = QbeastTree(random.Random(0), cube_size=10)
    made.append(made.new_rows(1))
    plain = made.snapshot()
    column = PartitionColumn("d", "d", "date")
    legacy = DataFile("old", 1, WHOLE_TABLE, tags={LEGACY_CUBE_TAG: ""})
    for kind, snapshot in (
        ("that may have deletion vectors", replace(plain, protocol=TableProtocol(3, 7, frozenset({DELETION_VECTORS})))),
        ("that is partitioned", replace(plain, metadata=replace(plain.metadata, partition_columns=(column,)))),
        ("with files of the library before version 0.6", replace(plain, files=(legacy,))),
    ):
        index = index_refusal(snapshot, QbeastIndex.of_snapshot(snapshot))
        assert index is not None
        yield f"Qbeast index of a table {kind}", f"`{index.code}`", f"`{INDEX}`", index.action


def _decisions(kinds: Sequence[type[DecisionReason]]) -> Iterator[tuple[str, ...]]:
    for reason in chain.from_iterable(kinds):
        if reason not in STARTS_WORK:
            yield f"`{reason}`", reason.message, ", ".join(f"`{path}`" for path in deciding(reason)), REASONS[reason]


def deciding(reason: DecisionReason) -> tuple[str, ...]:
    """Return the modules with a function that gives this reason, and does not only compare with it."""
    return tuple(
        str(path.relative_to(ROOT))
        for folder in ("shared/layout", "decider/decide")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if reason.name in _given_reasons(path)
    )


@cache
def _given_reasons(path: Path) -> frozenset[str]:
    """Return the names of the reasons that functions and constants of a module give."""
    tree = ast.parse(path.read_text())
    compared = {part for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    given = (part for one in functions for part in ast.walk(one) if part not in compared)
    constants = (node.value for node in tree.body if isinstance(node, ast.Assign) if isinstance(node.value, ast.Call))
    parts = chain(given, (part for value in constants for part in ast.walk(value)))
    return frozenset(
        part.attr
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
