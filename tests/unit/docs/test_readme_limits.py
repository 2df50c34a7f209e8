"""README, CONTRIBUTING and SECURITY say of limits and of data what the code does: each claim is executed here."""

import pytest

from decider.decide.actions import ACTIONS
from decider.events.detect import FORMATS
from decider.state.effective_policy import LogStatus, PolicyDefaults
from services.decider.settings import decider_settings
from shared.errors import InvalidInput
from shared.formats import delta
from shared.formats.registry import SUPPORT
from shared.jobs.payload import CLUSTER, DEDUPLICATE
from shared.refusals import Refusal
from shared.table import TableId, TableMetadata, TableProtocol, TableRef
from tests.interop.plan import small
from tests.interop.report import _INTRODUCTION
from tests.support.format_limits import PAGE, written

ROOT = PAGE.parent
README, CONTRIBUTING, SECURITY = (
    " ".join((ROOT / name).read_text(encoding="utf-8").split())
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")
)
METADATA = TableMetadata("t", ())


def refusal(feature: str, **configuration: str) -> Refusal | None:
    metadata = TableMetadata("t", (), configuration)
    return delta.refusal(metadata, TableProtocol(3, 7, frozenset({feature}), frozenset({feature})))


def test_readme_has_the_limits_of_formats_as_the_planner_obeys_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == written(text), "run: python -m tests.support.format_limits"
    limited = [name for name, support in SUPPORT.items() if support.job_kinds]
    assert limited == ["iceberg"]
    for kind in ACTIONS.kinds:
        policy = PolicyDefaults().resolve(TableRef(TableId("t"), "t", "x"), {}, {}, LogStatus(format="iceberg")).policy
        assert (f"`{kind.replace('_', '-')}`" in README.partition("these kinds of jobs do not run")[2][:200]) is (
            not policy.runs(kind)
        )


def test_events_of_iceberg_tables_are_read() -> None:
    """README and CONTRIBUTING once said that they are ignored."""
    assert {"lakekeeper", "polaris", "iceberg"} <= {one.source for one in FORMATS}
    assert "events of their commits are ignored" not in README
    assert "whose events are ignored today" not in CONTRIBUTING


@pytest.mark.parametrize("feature", ["catalogManaged", "variantType", "clustering"])
def test_tables_that_readme_calls_refused_are(feature: str) -> None:
    found = refusal(feature)
    assert found is not None
    assert (CLUSTER in found.allows) is (feature == "clustering")


def test_the_tables_own_properties_alone_decide_which_rows_are_removed() -> None:
    """SECURITY said so while an operator's registration could name a key."""
    key = {"lakewright.primary-key": "id", "lakewright.sequence-by": "ts"}
    plain, named = (TableRef(TableId("t"), "t", "x", properties=properties) for properties in ({}, key))
    resolve = PolicyDefaults().resolve
    assert resolve(plain, key, {}, LogStatus(format="delta")).policy.has_key
    assert not resolve(named, {}, {}, LogStatus(format="delta")).policy.has_key
    for variable, text in (
        ("LAKEWRIGHT_POLICY", "primary-key=id,sequence-by=ts"),
        ("LAKEWRIGHT_TENANTS", '{"sales": {"primary-key": "id"}}'),
    ):
        with pytest.raises(InvalidInput, match="no default does"):
            decider_settings({variable: text})
    assert DEDUPLICATE in ACTIONS.table_kinds
    assert "is decided by the table's own properties alone" in SECURITY


def test_the_rounds_with_other_engines_run_where_the_pages_say() -> None:
    page = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8")
    assert page.startswith(_INTRODUCTION)
    suite = (ROOT / "tests" / "contract" / "test_interop.py").read_text(encoding="utf-8")
    assert '"planned", list(small())' in suite
    assert len(list(small())) == 2
    for text in (" ".join(page.split()), CONTRIBUTING):
        assert "CI runs two" in text
