"""docs/refusals.md lists every refusal with where it is decided and what to do, as the rules have them."""

import re

from decider.events.table_hint import IgnoredReason
from decider.optimize.on_demand import RequestIgnored
from decider.optimize.property_trigger import TriggerOutcome
from shared.layout.eligibility import Reason
from shared.refusals import RefusalCode
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
