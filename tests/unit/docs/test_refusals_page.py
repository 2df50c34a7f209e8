"""docs/tables.md names every feature that is safe and every word by which a table is refused."""

from pathlib import Path

import pytest

from decider.formats.delta.metadata import REFUSED_FEATURES
from decider.tracking.refresh import UNREADABLE
from shared.formats.delta import SAFE_FEATURES
from shared.layout.eligibility import Reason
from shared.refusals import RefusalCode

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tables.md").read_text()
SECTION = PAGE[PAGE.index("## Refused tables") : PAGE.index("## Drift detection")]


@pytest.mark.parametrize("name", sorted(SAFE_FEATURES))
def test_the_page_names_each_safe_feature(name: str) -> None:
    assert f"`{name}`" in SECTION[SECTION.index("These table features are safe") :]


@pytest.mark.parametrize("name", sorted({name.removesuffix("-preview") for name in REFUSED_FEATURES}))
def test_the_page_names_each_feature_under_which_a_log_cannot_be_read(name: str) -> None:
    assert f"`{name}" in SECTION


@pytest.mark.parametrize("code", [*RefusalCode, UNREADABLE, Reason.REFUSED, Reason.CLUSTERED])
def test_the_page_names_each_code(code: str) -> None:
    assert f"`{code}`" in SECTION
