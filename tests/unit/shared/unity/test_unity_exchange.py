"""What each answer of a Unity catalog means."""

import json

import pytest

from shared.errors import LakewrightError, NoTable, PermanentError, RetryableError
from shared.unity.exchange import UnityAnswer, decode_answer
from tests.support.unity_samples import sample

DOING = "catalog unity: reading a.b.c"


def failed(status: int, body: bytes) -> LakewrightError:
    with pytest.raises(LakewrightError) as found:
        decode_answer(UnityAnswer(status, body), DOING)
    assert str(found.value).startswith(DOING)
    return found.value


def of_sample(status: int, name: str) -> LakewrightError:
    return failed(status, json.dumps(sample(name)).encode())


def test_a_success_is_an_object() -> None:
    assert decode_answer(UnityAnswer(200, json.dumps(sample("table")).encode()), DOING) == sample("table")


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_a_success_that_is_no_object_is_an_error_of_the_address(body: bytes) -> None:
    problem = failed(200, body)
    assert isinstance(problem, PermanentError)
    assert "`uri` in LAKEWRIGHT_CATALOGS" in str(problem)


def test_only_the_catalog_says_that_a_table_is_gone() -> None:
    problem = of_sample(404, "table_not_found")
    assert isinstance(problem, NoTable)
    assert "TABLE_NOT_FOUND: Table not found: unity.default.my_new_table" in str(problem)


@pytest.mark.parametrize("code", ["ENDPOINT_NOT_FOUND", "", "FEATURE_DISABLED", None, 5])
def test_another_404_does_not_say_that_a_table_is_gone(code: object) -> None:
    """The state of a table that is gone is deleted; a wrong address must not have that effect."""
    problem = failed(404, json.dumps({"error_code": code, "message": "no"}).encode())
    assert isinstance(problem, PermanentError)


@pytest.mark.parametrize("body", [b"<html>404</html>", b"{}", b'"TABLE_NOT_FOUND"'])
def test_a_404_of_another_server_names_the_setting(body: bytes) -> None:
    problem = failed(404, body)
    assert isinstance(problem, PermanentError)
    assert "`uri` in LAKEWRIGHT_CATALOGS" in str(problem)


@pytest.mark.parametrize(("status", "name"), [(401, "unauthenticated"), (403, "permission_denied")])
def test_a_refusal_names_the_token_and_the_rights(status: int, name: str) -> None:
    problem = of_sample(status, name)
    assert isinstance(problem, PermanentError)
    assert "`token` in LAKEWRIGHT_CATALOGS" in str(problem)
    assert "USE SCHEMA" in str(problem)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_catalog_that_is_overloaded_or_down_is_asked_again(status: int) -> None:
    assert isinstance(of_sample(status, "resource_exhausted"), RetryableError)
    assert isinstance(failed(status, b"<html>"), RetryableError)


def test_what_a_catalog_does_not_offer_is_not_asked_for_again() -> None:
    problem = failed(501, b'{"error_code": "UNIMPLEMENTED", "message": "no S3"}')
    assert isinstance(problem, PermanentError)
    assert "does not offer this" in str(problem)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 405])
def test_every_other_status_is_permanent(status: int) -> None:
    assert isinstance(failed(status, b"https://elsewhere.example.com"), PermanentError)


def test_the_message_of_a_catalog_is_one_short_line() -> None:
    problem = failed(400, json.dumps({"error_code": "INVALID_ARGUMENT", "message": "a\nb " + "x" * 5_000}).encode())
    assert "a b xxx" in str(problem)
    assert len(str(problem)) < 400
