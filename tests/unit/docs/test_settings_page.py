"""The page of settings tells every variable that the services read, in the words of the code."""

import re

from tests.tools.settings_page import PAGE, ROOT, page


def test_the_page_is_what_the_settings_say() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.tools.settings_page > docs/settings.md"


def test_no_service_reads_a_variable_that_the_page_leaves_out() -> None:
    read = {
        name
        for path in (ROOT / "services").rglob("*.py")
        for name in re.findall(r"\"(LAKEWRIGHT_[A-Z0-9_]+)\"", path.read_text())
    }
    assert len(read) > 20
    assert read - set(re.findall(r"`(LAKEWRIGHT_[A-Z0-9_]+)`", PAGE.read_text())) == set()
