"""Pages say what the code says: the tables that are made from it, and what is compared with it."""

import math
import re
from pathlib import Path
from types import ModuleType

import pytest

from decider.events.table_hint import IgnoredReason
from decider.optimize.on_demand import RequestIgnored
from decider.optimize.property_trigger import TriggerOutcome
from decider.state.effective_policy import LogStatus, PolicyDefaults, PolicyOrigin, PolicySource
from services.cli.commands.queue import rows
from shared.formats.delta import SAFE_FEATURES
from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import Reason, evaluate_layout
from shared.layout.partition_stats import stats_of_sizes
from shared.layout.planner import plan_rewrite
from shared.partitions import WHOLE_TABLE
from shared.policy.names import MANUAL, PREFIX
from shared.policy.policy import Policy
from shared.policy.property import Property
from shared.policy.property_table import PROPERTIES
from shared.policy.refused_properties import REFUSED
from shared.queue.settings import SETTINGS
from shared.refusals import RefusalCode
from shared.table import DataFile, TableId, TableRef
from tests.support.property_samples import GOOD
from tests.tools import (
    cli_page,
    encode_reasons_page,
    job_states_page,
    packages_page,
    prices_page,
    set_aside_page,
    settings_page,
)
from tests.tools.refusal_remedies import STARTED
from tests.tools.refusals_page import (
    PAGE,
    PARTITION_REASONS,
    ROOT,
    STARTS_WORK,
    TABLE_REASONS,
    deciding,
    page,
)

PROPERTIES_PAGE = Path(__file__).resolve().parents[3] / "docs" / "properties.md"
TABLE = TableRef(TableId("t"), "t", "file:///t")


def table_rows(header: str) -> list[list[str]]:
    """The partitions of each row below a header of the page."""
    lines = PROPERTIES_PAGE.read_text().splitlines()
    start = lines.index(header) + 2
    rows: list[list[str]] = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([partition.strip() for partition in line.strip("|").split("|")])
    return rows


def names_in(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


OBEYED = [
    name
    for partitions in table_rows("| property | default | meaning | also accepted |")
    for name in names_in(partitions[0]) + names_in(partitions[3])
]
IGNORED = [name for partitions in table_rows("| property | what to do |") for name in names_in(partitions[0])]


def row(prop: Property) -> str:
    """A row of the page; `|` would end a partition, and no text has one."""
    aliases = ", ".join(f"`{name}`" for name in prop.aliases)
    return f"| `{PREFIX}{prop.name}` | {prop.default} | {prop.description} | {aliases} |"


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_the_page_has_the_row_of_each_property(prop: Property) -> None:
    assert row(prop) in PROPERTIES_PAGE.read_text().splitlines(), f"docs/properties.md lacks this row:\n{row(prop)}"


def test_the_page_has_no_row_of_a_property_that_is_none() -> None:
    assert len(table_rows("| property | default | meaning | also accepted |")) == len(PROPERTIES)


@pytest.mark.parametrize("name", [*REFUSED, MANUAL])
def test_the_page_names_what_is_refused_and_what_starts_a_run(name: str) -> None:
    assert f"`{name}`" in PROPERTIES_PAGE.read_text()


@pytest.mark.parametrize("name", OBEYED)
def test_each_name_on_the_page_takes_effect_on_the_policy_and_says_so(name: str) -> None:
    """The sample differs from the default, so that dropping it silently would be seen."""
    samples = [sample for sample in GOOD if sample[0] == name and sample[3] != getattr(Policy(), sample[2])]
    samples = samples or [sample for sample in GOOD if sample[0] == name]
    _, value, field, expected = samples[0]
    found = PolicyDefaults(queue="").resolve(TABLE, {name: value}, {}, LogStatus())
    assert found.issues == ()
    assert getattr(found.policy, field) == expected
    assert found.origins[field] == PolicyOrigin(PolicySource.TABLE, name)


@pytest.mark.parametrize("name", IGNORED)
def test_each_name_that_the_page_calls_ignored_is_shown_with_a_reason_and_changes_nothing(name: str) -> None:
    found = PolicyDefaults(queue="").resolve(TABLE, {name: "24", "lakewright.fan-in": "4"}, {}, LogStatus())
    (issue,) = found.issues
    assert (issue.property, issue.value, issue.is_blocking) == (name, "24", False)
    assert "is ignored" in issue.reason or "use lakewright." in issue.reason
    assert found.policy == Policy(fan_in=4, fits_levels=False)


def test_the_page_lists_every_name_that_is_obeyed_or_ignored() -> None:
    assert set(OBEYED) == {name for name, *_ in GOOD}
    assert set(IGNORED) == set(REFUSED)


START_PAGE = " ".join((Path(__file__).resolve().parents[3] / "docs" / "start.md").read_text(encoding="utf-8").split())
MIB = 1 << 20
POLICY = Policy()


def test_the_decisions_of_the_example_are_those_of_the_code() -> None:
    for files in range(1, 9):
        stats = stats_of_sizes(POLICY.size_levels, [MIB] * files)
        reason = evaluate_layout(stats, POLICY).reason
        row = f"| {files} | {files} | {stats.excess(POLICY.target_bytes) / MIB**2 / files:,.0f} MiB² | "
        start = START_PAGE.find(row)
        assert (start >= 0) is (files in (1, 2, 7, 8)), row
        assert start < 0 or f"`{reason}`" in START_PAGE[start : start + 90]


def test_the_end_of_the_example_is_what_the_planner_leaves() -> None:
    files: list[DataFile] = []
    rewritten = jobs = most = 0
    for commit in range(1, 129):
        files.append(DataFile(f"{commit}", MIB, WHOLE_TABLE))
        most = max(most, len(files))
        for group in plan_rewrite(RewriteKind.LEVELS, WHOLE_TABLE, files, POLICY).groups:
            size = sum(file.size_bytes for file in group.files)
            rewritten += size
            jobs += 1
            gone = {file.path for file in group.files}
            files = [*(file for file in files if file.path not in gone), DataFile(f"to {commit}", size, WHOLE_TABLE)]
    assert [file.size_bytes for file in files] == [128 * MIB]
    figures = f"{jobs} jobs, at most {most} files at any time instead of 128, and {rewritten // MIB} MiB rewritten"
    assert figures in START_PAGE
    assert f"{rewritten / (128 * MIB):.1f} bytes per byte" in START_PAGE


def test_the_plan_of_a_large_table_is_that_of_the_planner() -> None:
    """A hundredth of the table: each output takes what fills it, so the number of groups follows from the bytes."""
    plan = plan_rewrite(
        RewriteKind.LEVELS, WHOLE_TABLE, [DataFile(f"{number}", MIB, WHOLE_TABLE) for number in range(1_000)], POLICY
    )
    assert (len(plan.groups), sum(len(group.files) for group in plan.groups)) == (math.ceil(1_000 / 128), 1_000)
    groups = math.ceil(100_000 / 128)
    assert f"100,000 replaced in {groups} groups" in START_PAGE
    assert f"some {math.ceil(groups / 8)} commits" in START_PAGE


def test_the_five_properties_have_the_defaults_of_the_code() -> None:
    table = START_PAGE.partition("## The five properties to set first")[2].partition("## ")[0]
    named = [one for one in PROPERTIES if f"| `lakewright.{one.name}` | " in table]
    assert len(named) == 5
    for one in named:
        shown = table.partition(f"| `lakewright.{one.name}` | ")[2].partition(" | ")[0].strip("`")
        assert shown.replace("mb", " MiB") == one.default, one.name


QUEUE_PAGE = Path(__file__).resolve().parents[3] / "docs" / "queue.md"


def test_the_page_has_the_row_of_each_setting_and_no_other() -> None:
    answer = [
        {
            "name": name,
            "value": one.default,
            "unit": one.unit.value,
            "default": one.default,
            "description": one.description,
        }
        | {"minimum": one.low, "maximum": one.high}
        for name, one in SETTINGS.items()
    ]
    expected = [
        f"| `{name}` | {default} | {low} | {high} | {unit} | {meaning} |"
        for name, _, unit, default, low, high, meaning in rows({"settings": answer})
    ]
    lines = QUEUE_PAGE.read_text().splitlines()
    first = lines.index("| name | default | from | to | unit | meaning |") + 2
    assert lines[first : lines.index("", first)] == expected


TABLES_PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tables.md").read_text()
SECTION = TABLES_PAGE[TABLES_PAGE.index("## Refused tables") : TABLES_PAGE.index("## Drift detection")]


@pytest.mark.parametrize("name", sorted(SAFE_FEATURES))
def test_the_page_names_each_safe_feature(name: str) -> None:
    assert f"`{name}`" in SECTION[SECTION.index("These table features are safe") :]


def test_the_page_is_what_the_rules_say() -> None:
    """`python -m tests.tools.refusals_page > docs/refusals.md` writes it."""
    assert PAGE.read_text() == page()


def test_the_page_has_every_reason_and_no_row_without_a_remedy() -> None:
    rows = [
        line for line in page().splitlines() if line.startswith("| ") and not line.startswith(("| reason |", "|--"))
    ]
    reasons = (
        *RefusalCode,
        *(reason for kind in (*PARTITION_REASONS, *TABLE_REASONS) for reason in kind if reason not in STARTS_WORK),
        *RequestIgnored,
        *(set(TriggerOutcome) - STARTED),
        *IgnoredReason,
    )
    for reason in reasons:
        assert any(f"`{reason}`" in row for row in rows), reason
    for row in rows:
        partitions = [partition.strip() for partition in row.strip("|").split(" | ")]
        assert (len(partitions), all(partitions)) == (4, True), row


def test_each_module_that_the_page_names_exists() -> None:
    places = set(re.findall(r"`((?:shared|decider|actor)/[^`]+)`", page()))
    assert places
    for place in places:
        assert (ROOT / place).exists(), place


def test_each_reason_of_a_partition_is_decided_somewhere() -> None:
    reasons = (reason for kind in (*PARTITION_REASONS, *TABLE_REASONS) for reason in kind)
    assert [reason for reason in reasons if reason not in STARTS_WORK and not deciding(reason)] == []


def test_work_and_refusals_are_distinguished() -> None:
    """A reason that someone adds has to be put on the one side or on the other."""
    assert {reason for reason in Reason if "refused" in reason or "deferred" in reason}.isdisjoint(STARTS_WORK)


def test_the_page_of_settings_is_what_the_settings_say() -> None:
    assert settings_page.PAGE.read_text() == settings_page.page(), (
        "run: python -m tests.tools.settings_page > docs/settings.md"
    )


def test_no_service_reads_a_variable_that_the_page_leaves_out() -> None:
    read = {
        name
        for path in (settings_page.ROOT / "services").rglob("*.py")
        for name in re.findall(r"\"(LAKEWRIGHT_[A-Z0-9_]+)\"", path.read_text())
    }
    assert len(read) > 20
    assert read - set(re.findall(r"`(LAKEWRIGHT_[A-Z0-9_]+)`", settings_page.PAGE.read_text())) == set()


@pytest.mark.parametrize(
    "made",
    [cli_page, encode_reasons_page, job_states_page, packages_page, prices_page, set_aside_page],
    ids=lambda made: made.__name__,
)
def test_the_page_shows_the_table_and_the_diagram_of_the_code(made: ModuleType) -> None:
    text = made.PAGE.read_text(encoding="utf-8")
    shown = text[text.index(made.BEGIN) : text.index(made.END) + len(made.END)]
    assert shown == made.rendered(), f"run python -m {made.__name__}"
