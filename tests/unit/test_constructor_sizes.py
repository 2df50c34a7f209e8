"""No object is built from more than ten others: a constructor that long is a bag, and hides what its class needs."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_nodes import Nodes, nodes_in, nodes_of

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("shared", "decider", "actor", "services")

MAX_FIELDS = 10

RECORDS = {
    "actor/formats/iceberg/inputs.py": {"AppliedDelete"},
    "actor/formats/parquet/footer_summary.py": {"FooterSummary"},
    "actor/ports.py": {"GroupOutcome"},
    "actor/report.py": {"RunReport"},
    "decider/api/metrics.py": {"MetricsSnapshot"},
    "decider/decide/decision.py": {"Decision"},
    "decider/decide/ledger.py": {"LedgerRecord"},
    "decider/store/fleet_history.py": {"FleetSample"},
    "decider/store/queue/actor_registry.py": {"ActorRecord"},
    "decider/store/tables/advice_records.py": {"Advice"},
    "decider/store/registry/discovery_lease.py": {"DiscoveryProgress"},
    "decider/store/redis/redis_health.py": {"ServerStatus"},
    "decider/store/tables/table_state.py": {"TableState"},
    "decider/whatif/simulator.py": {"SimulationResult", "_RunningSums"},
    "decider/whatif/trace_reader.py": {"TableTrace"},
    "services/actor/settings.py": {"ActorSettings"},
    "services/cli/local/plan.py": {"LocalPlan"},
    "services/cli/local/run.py": {"LocalRun"},
    "shared/layout/commit_metadata.py": {"CommitMetadata"},
    "shared/formats/iceberg/manifests.py": {"Entry"},
    "shared/index/signal.py": {"IndexSignal"},
    "shared/index/status.py": {"IndexMetrics"},
    "shared/jobs/payload.py": {"JobPayload"},
    "shared/layout/partition_stats.py": {"PartitionStats"},
    "shared/policy/policy.py": {"Policy"},
    "shared/queue/model.py": {"Claim", "JobRequest"},
    "shared/queue/queries.py": {"NextJob"},
    "shared/queue/records.py": {"JobView", "RunRecord"},
    "shared/table.py": {"Commit"},
}
"""Plain values with more fields, by file: stored records, reports, figures and settings; none holds a service."""


def fields_of(made: ast.ClassDef) -> int | None:
    """Count the parameters of a constructor, or the fields of a dataclass; None for neither."""
    for node in made.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return len(node.args.args) - 1 + len(node.args.kwonlyargs)
    if not any("dataclass" in ast.unparse(one) for one in made.decorator_list):
        return None
    return sum(
        isinstance(node, ast.AnnAssign)
        and "ClassVar" not in ast.unparse(node.annotation)
        and "init=False" not in ast.unparse(node.value or ast.Constant(None))
        for node in made.body
    )


def too_large(nodes: Nodes) -> Iterator[tuple[str, int]]:
    """Yield the classes of a module with a constructor beyond the limit, and its size."""
    for node in nodes[ast.ClassDef]:
        if (fields_of(node) or 0) > MAX_FIELDS:
            yield node.name, fields_of(node) or 0


def test_no_constructor_has_more_than_ten_fields_but_those_of_plain_records() -> None:
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    assert len(paths) > 200
    found = {
        str(path.relative_to(ROOT)): names
        for path in paths
        if (names := {name for name, _ in too_large(nodes_in(path))})
    }
    assert found == RECORDS


@pytest.mark.parametrize(
    "body",
    [
        "@dataclass(frozen=True)\nclass Bag:\n" + "".join(f"    f{n}: int\n" for n in range(11)),
        f"class Bag:\n    def __init__(self, *, {', '.join(f'f{n}: int' for n in range(11))}) -> None: ...\n",
    ],
)
def test_the_count_finds_a_bag(body: str) -> None:
    assert list(too_large(nodes_of(body))) == [("Bag", 11)]
