"""Shapes of code that no linter checks: small constructors, quick first keys, kept cancellations, mirrored folders."""

import ast
import re
from collections.abc import Iterator
from functools import cache
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
    "decider/store/tables/advice_records.py": {"Advice", "Evidence"},
    "decider/store/registry/discovery_lease.py": {"DiscoveryProgress"},
    "decider/store/redis/redis_health.py": {"ServerStatus"},
    "decider/store/tables/table_history.py": {"TableSample"},
    "decider/store/tables/table_state.py": {"TableState"},
    "decider/whatif/simulator.py": {"SimulationResult", "_RunningSums"},
    "decider/state/table_summary.py": {"TableSummary"},
    "decider/whatif/trace_reader.py": {"TableTrace"},
    "services/actor/settings.py": {"ActorSettings"},
    "services/cli/local/plan.py": {"LocalPlan"},
    "services/cli/local/run.py": {"LocalRun"},
    "shared/layout/commit_metadata.py": {"CommitMetadata"},
    "shared/formats/support.py": {"FormatSupport"},
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


DROPPED_FIRST = re.compile(r"(?:del self|\.pop\().*next\(iter\(self\.")


def test_no_plain_dict_loses_its_first_key_again_and_again() -> None:
    """The more it lost, the longer the search: after 30,000 commits a decider needed three times the CPU."""
    sources = [path for part in ("actor", "decider", "services", "shared") for path in (ROOT / part).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if DROPPED_FIRST.search(line)
    ]
    assert len(sources) > 300
    assert found == []


def test_nothing_waits_by_a_function_that_can_lose_a_cancellation() -> None:
    """`asyncio.wait_for` of Python 3.11 returns a result that comes together with a cancellation, and goes on."""
    sources = [path for part in ("decider", "services", "shared") for path in (ROOT / part).rglob("*.py")]
    assert len(sources) > 300
    assert [str(path) for path in sources if "asyncio.wait_for(" in path.read_text(encoding="utf-8")] == []


UNIT = Path(__file__).parent
NOT_OF_THE_PRODUCT = {"docs", "tests/mutants", "tests/support", "tests/tools"}
"""What else has unit tests, in a folder of its last name: the pages, the mutants, the tests' support and tools."""


def test_each_folder_of_unit_tests_is_named_like_a_package() -> None:
    folders = {path.parent.relative_to(UNIT) for path in UNIT.rglob("test_*.py")} - {Path()}
    others = {Path(place).name for place in NOT_OF_THE_PRODUCT if (ROOT / place).is_dir()}
    packages = {folder for folder in folders if (ROOT / folder / "__init__.py").is_file()}
    assert {str(folder) for folder in folders - packages} == others


def test_no_two_files_of_unit_tests_have_one_name() -> None:
    names = [path.name for path in UNIT.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


LAYOUT = ROOT / "shared" / "layout"
MOST = 17
"""Functions that `plan_rewrite` hands its policy to, itself included: half of those that once did."""


def functions() -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for path in sorted(LAYOUT.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
    return found


def handed_on(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of the functions that a function calls with its policy."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(isinstance(one, ast.Name) and one.id == "policy" for one in given):
                yield node.func.id


def test_at_most_half_of_the_planner_takes_the_policy() -> None:
    known, waiting, reached = functions(), ["plan_rewrite"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in known and name not in reached:
            reached.add(name)
            waiting += [one for function in known[name] for one in handed_on(function)]
    assert {"plan", "plan_full", "evaluate_layout", "select_groups"} <= reached, "the path is followed"
    assert len(reached) <= MOST, sorted(reached)


FOLDERS = (
    *("decider/formats/delta/", "actor/formats/delta/", "actor/formats/qbeast/"),
    *("shared/formats/delta", "shared/formats/qbeast"),
)

CONCEPTS = re.compile(
    r"_delta_log|_last_checkpoint|\.crc\b|\bdelta\.[a-zA-Z]|spark\.databricks|io\.delta"
    r"|deletionVector|dataChange|userMetadata|metaData|commitInfo|partitionValues"
)
"""Names that exist in Delta alone: of its log, its actions, its properties and its classes."""

EXCEPTIONS = {
    "actor/jvm/": "the JVM of today's one engine: its jars, classes, session and log stores are Delta's",
    "decider/api/routes/events.py": "examples of what object stores send for a Delta table",
    "decider/events/object_keys.py": "object stores name the written key, which is how a Delta commit is recognized",
    "services/demo/": "the demo writes a table of its own",
    "shared/policy/action_properties.py": "Delta's own table properties are understood as ours",
    "shared/paths/boundary.py": "a log behind a link leads out of the table as data files do",
    "shared/policy/property_table.py": "Delta's own table properties are understood as ours",
}


def sources() -> Iterator[Path]:
    for package in ("decider", "actor", "shared", "services"):
        yield from sorted((ROOT / package).rglob("*.py"))


def texts(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Yield the text constants of a module with their lines; docstrings explain and are left out."""
    prose = {id(node.value) for node in nodes[ast.Expr]}
    for node in nodes[ast.Constant]:
        if isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


@cache
def found() -> dict[str, list[str]]:
    """Return the places that name a concept of Delta, by file, outside its folders."""
    places: dict[str, list[str]] = {}
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(FOLDERS):
            for line, text in texts(nodes_in(path)):
                if match := CONCEPTS.search(text):
                    places.setdefault(name, []).append(f"{name}:{line}: {match[0]}")
    return places


def test_only_the_folders_of_a_format_know_its_concepts() -> None:
    wrong = [place for name, places in found().items() if not name.startswith(tuple(EXCEPTIONS)) for place in places]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_an_exception_is_needed(exception: str) -> None:
    assert any(name.startswith(exception) for name in found())


def test_concepts_are_found_in_code_and_not_in_prose() -> None:
    source = '"""The `_delta_log` of a table."""\nKEY = f"{x}/_delta_log"\n'
    assert [line for line, text in texts(nodes_of(source)) if CONCEPTS.search(text)] == [2]
