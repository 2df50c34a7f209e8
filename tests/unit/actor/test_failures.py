"""Every exception that libraries of tables and stores raise has a meaning, and what is certain is told from the rest.

`tests/contract/test_failure_classes.py` compares these tables with the classes of the libraries.
"""

import pytest

from actor.failures import JudgedBy, Meaning, Rule, explained, judge, verdict
from actor.formats.delta.conflicts import FAILURES as OF_DELTA_TABLES
from actor.formats.delta.conflicts import RULES as DELTA
from actor.formats.iceberg.conflicts import FAILURES as OF_ICEBERG_TABLES
from actor.formats.iceberg.conflicts import RULES as ICEBERG
from actor.rewrite.model import Blame, NotAsked, Verdict
from shared.errors import LakewrightError, NoTable, PermanentError, RefusedFiles, RetryableError, Unsupported
from tests.support.failure_classes import OF_DELTA, OF_ICEBERG, OF_STORES, SAYING, Expected
from tests.support.java_errors import JavaError


def cases(table: dict[Expected, str]) -> list[tuple[str, Expected]]:
    return [(name, expected) for expected, names in table.items() for name in names.split()]


def found(error: Exception, rules: tuple[Rule, ...]) -> Expected:
    return judge(error, rules).meaning, verdict(error, rules)


@pytest.mark.parametrize(("name", "expected"), cases(OF_DELTA))
def test_each_exception_of_delta_has_one_meaning(name: str, expected: Expected) -> None:
    assert found(JavaError(name), DELTA) == expected
    assert found(JavaError("Py4JJavaError", "SparkException", name), DELTA) == expected, "wherever it stands"


@pytest.mark.parametrize(("name", "expected"), cases(OF_ICEBERG))
def test_each_exception_of_iceberg_has_one_meaning(name: str, expected: Expected) -> None:
    assert found(JavaError(name), ICEBERG) == expected


@pytest.mark.parametrize(("name", "expected"), cases(OF_STORES))
@pytest.mark.parametrize("rules", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_each_exception_of_java_and_the_stores_means_the_same_in_both_formats(
    name: str, expected: Expected, rules: tuple[Rule, ...]
) -> None:
    assert found(JavaError("SparkException", name), rules) == expected


@pytest.mark.parametrize(("name", "text", "meaning"), SAYING)
@pytest.mark.parametrize("rules", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_where_the_class_does_not_tell_the_message_does(
    name: str, text: str, meaning: Meaning, rules: tuple[Rule, ...]
) -> None:
    assert found(JavaError("SparkException", name, message=text), rules) == (meaning, Verdict.UNKNOWN)


@pytest.mark.parametrize("name", ["IndexOutOfBoundsException", "NullPointerException", "NegativeArraySizeException"])
def test_a_contradiction_met_while_a_file_is_read_refuses_that_file_and_elsewhere_proves_nothing_against_files(
    name: str,
) -> None:
    """Bytes that are decompressed to other ones lead the reader anywhere."""
    reading = JavaError("SparkException", name, message="[FAILED_READ_FILE.NO_HINT] Encountered error while reading f")
    assert judge(reading, DELTA).meaning is Meaning.REFUSED
    assert judge(JavaError("SparkException", name), DELTA).meaning is Meaning.PERMANENT


def test_an_archived_object_is_restored_and_no_matter_of_permissions() -> None:
    error = JavaError("AccessDeniedException", message="s3a://b/f: InvalidObjectState (Status Code: 403)")
    assert str(explained(error, "rewriting t", DELTA)).endswith("restore them in the store")


@pytest.mark.parametrize("code", [*range(400, 408), *range(410, 429), 431, 451])
def test_an_answer_of_a_catalog_that_is_the_callers_fault_is_certain(code: int) -> None:
    error = JavaError("RESTException", message=f"Unable to process (code: {code}, type: x): no")
    assert found(error, ICEBERG) == (Meaning.PERMANENT, Verdict.REFUSED)


@pytest.mark.parametrize("code", [408, 429, 500, 502, 504])
def test_an_answer_that_another_request_may_get_otherwise_is_not_certain(code: int) -> None:
    error = JavaError("RESTException", message=f"Unable to process (code: {code}, type: x): no")
    assert found(error, ICEBERG) == (Meaning.TRANSIENT, Verdict.UNKNOWN)


@pytest.mark.parametrize("name", ["ForbiddenException", "BadRequestException", "NoSuchTableException", "RESTException"])
def test_a_refusal_proves_nothing_where_it_is_only_a_cause(name: str) -> None:
    """A wrapper may have asked again in between; Iceberg, too, looks at the outermost alone."""
    text = "Unable to process (code: 422, type: x): no"
    assert verdict(JavaError("RuntimeException", name, message=text), ICEBERG) is Verdict.UNKNOWN
    assert verdict(JavaError("CommitStateUnknownException", name, message=text), ICEBERG) is Verdict.UNKNOWN


def test_metadata_that_could_not_be_written_were_not_committed() -> None:
    error = JavaError("RuntimeIOException", "IOException", message="Failed to write json to file: s3://b/m.json")
    assert verdict(error, ICEBERG) is Verdict.REFUSED


@pytest.mark.parametrize("rules", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_a_commit_that_was_not_asked_for_was_not_made_whatever_ended_it(rules: tuple[Rule, ...]) -> None:
    for name in ("NullPointerException", "IOException", "SocketTimeoutException"):
        assert verdict(not_asked(JavaError(name)), rules) is Verdict.REFUSED
    assert verdict(not_asked(OSError("away")), rules) is Verdict.REFUSED
    assert verdict(not_asked(JavaError("ValidationException")), ICEBERG) is Verdict.TAKEN


def not_asked(cause: Exception) -> NotAsked:
    error = NotAsked("not asked")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("rules", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_an_error_of_python_proves_nothing(rules: tuple[Rule, ...]) -> None:
    assert found(ConnectionError("ValidationException"), rules) == (Meaning.TRANSIENT, Verdict.UNKNOWN)


@pytest.mark.parametrize(
    ("meaning", "kind"),
    [
        (Meaning.REFUSED, RefusedFiles),
        (Meaning.UNSUPPORTED, Unsupported),
        (Meaning.MISSING, NoTable),
        (Meaning.PERMANENT, PermanentError),
        (Meaning.TRANSIENT, RetryableError),
    ],
)
def test_each_meaning_is_one_of_our_errors_with_what_follows_and_what_to_do(
    meaning: Meaning, kind: type[LakewrightError]
) -> None:
    rules = (Rule(frozenset({"X"}), meaning, remedy="do this", reason="type", field="schema"),)
    error = explained(JavaError("X", message="why"), "rewriting 2 files in p of t", rules, so="the table is unchanged")
    assert type(error) is kind
    assert str(error) == "rewriting 2 files in p of t: X: why; the table is unchanged; do this"


def test_refused_files_have_a_reason_and_say_what_to_do() -> None:
    rules = [rule for rule in (*DELTA, *ICEBERG) if rule.meaning is Meaning.REFUSED]
    assert rules
    assert all(rule.reason and rule.remedy for rule in rules)


def test_a_text_has_every_cause_that_says_more_and_no_stack() -> None:
    error = JavaError("SparkException")
    inner = JavaError("IOException", message="s3a://b/f: broken\npage 7\n\tat org.example.A.b(A.java:1)\nmore")
    error.java_exception.getCause = lambda: inner.java_exception
    error.java_exception.getMessage = lambda: "Lost task\n\nDriver stacktrace:\n  x"
    text = str(explained(error, "rewriting t", ()))
    assert text == "rewriting t: SparkException: Lost task <- IOException: s3a://b/f: broken page 7"


def test_an_exception_without_a_message_says_where_it_was_raised() -> None:
    error = JavaError("NullPointerException", message=None)
    text = str(explained(error, "rewriting t", ()))
    assert "NullPointerException: raised at org.example.Reader.read(Reader.java:7)" in text
    error.java_exception.getStackTrace = list
    assert "NullPointerException: without a message" in str(explained(error, "rewriting t", ()))


@pytest.mark.parametrize("name", ["ConnectException", "UnknownHostException", "SSLHandshakeException"])
def test_a_failure_of_the_network_outweighs_what_it_led_to(name: str) -> None:
    for rules in (DELTA, ICEBERG):
        assert judge(JavaError("IllegalArgumentException", name), rules).meaning is Meaning.TRANSIENT


def test_a_chain_of_causes_that_is_a_circle_ends() -> None:
    error = JavaError("IOException")
    error.java_exception.getCause = lambda: error.java_exception
    assert judge(error, ()).meaning is Meaning.TRANSIENT


@pytest.mark.parametrize("failures", [OF_DELTA_TABLES, OF_ICEBERG_TABLES], ids=["delta", "iceberg"])
@pytest.mark.parametrize(
    ("name", "text", "blame"),
    [
        ("SparkException", "Lost task: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file f", Blame.FILES),
        ("RuntimeException", "Could not read footer: java.lang.RuntimeException: f", Blame.FILES),
        (
            "SparkException",
            "Lost task: io.lakewright.parquet.DamagedInput: a page differs from its checksum",
            Blame.FILES,
        ),
        ("SparkException", "Unsupported encoding: RLE_X", Blame.FILES),
        ("SparkException", "Lost task: java.io.IOException: No space left on device", Blame.STORE),
        ("SparkException", "Lost task: java.io.IOException: Disk quota exceeded", Blame.STORE),
        ("SparkException", "Lost task: java.io.FileNotFoundException: f", Blame.STORE),
        ("SparkException", "Lost task: org.apache.iceberg.exceptions.NotFoundException: f", Blame.STORE),
        ("SparkException", "ClassNotFoundException: org.example.Reader", Blame.ALL),
        ("SparkException", "Connection reset", Blame.ALL),
    ],
)
def test_what_a_group_failed_by_says_whether_others_may_be_written(
    failures: JudgedBy, name: str, text: str, blame: Blame
) -> None:
    assert failures.blame(JavaError(name, message=text)) is blame
    assert failures.text(JavaError(name, message=text)).startswith(name)


def test_only_what_is_no_error_of_ours_is_translated() -> None:
    ours = RefusedFiles("no", reason="type")
    for raised, expected in ((ours, RefusedFiles), (JavaError("IOException"), RetryableError)):
        with pytest.raises(expected) as caught, OF_DELTA_TABLES.translated("reading t"):
            raise raised
        assert (caught.value is ours) == (raised is ours)
