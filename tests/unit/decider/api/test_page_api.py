"""The page's types are those of the API: a changed field of the API breaks its build."""

from tests.tools.page_api import FILE, page_api


def test_the_page_is_built_from_the_present_api() -> None:
    assert FILE.read_text(encoding="utf-8") == page_api(), "run make page-api, then make check"


def test_texts_are_left_out_and_fields_that_are_called_like_texts_are_not() -> None:
    text = page_api()
    assert "Table id." not in text
    assert '"description": {' in text, "the field of a policy value"
    assert '"title": {' in text, "the field of a rule"
