"""Meaning of Iceberg's exceptions: proof that a commit was not made, and consequences of answers of catalogs.

Iceberg marks what is certain by `CleanableFailure`, after which it deletes its own files of the commit. So is every
answer of the kind 4xx, except 408 and 429, and what happened before anything was asked of the catalog. Any other
failure leaves the outcome unknown: the catalog may have accepted the commit before the failure reached us.
"""

import re

from actor.failures import JudgedBy, Meaning, Rule, cause_of
from actor.jvm.errors import first_lines, jvm_class_names
from actor.rewrite.model import Verdict
from shared.errors import Conflict, LakewrightError, RetryableError

_DROPPED = "DeletesDroppedException"
_UNAUTHORIZED = "NotAuthorizedException"
_OTHER_THAN_PAGES = re.compile(r"\A(?!.*Unsupported encoding: )", re.DOTALL)
_CATALOG = "check the credentials in LAKEWRIGHT_CATALOGS, and that they may write"

RULES: tuple[Rule, ...] = (
    Rule(frozenset({"CommitStateUnknownException"})),
    Rule(frozenset({"ValidationException"}), verdict=Verdict.TAKEN),
    Rule(frozenset({"CommitFailedException", "AlreadyExistsException"}), verdict=Verdict.BUSY),
    Rule(
        frozenset({"IllegalArgumentException"}),
        verdict=Verdict.CHANGED,
        text=re.compile("Must use DVs for position deletes"),  # The format version was raised meanwhile.
    ),
    Rule(frozenset({_DROPPED}), verdict=Verdict.REFUSED),  # The next attempt would drop them, too.
    Rule(
        frozenset({"NoSuchTableException", "NoSuchNamespaceException", "NoSuchViewException"}),
        Meaning.MISSING,
        Verdict.REFUSED,
        is_outermost=True,
        remedy="the catalog has no such table: register it under its name of today",
    ),
    Rule(
        frozenset({"ForbiddenException", _UNAUTHORIZED}),
        Meaning.PERMANENT,
        Verdict.REFUSED,
        is_outermost=True,
        remedy=_CATALOG,
    ),
    Rule(
        frozenset({"BadRequestException", "UnprocessableEntityException"}),
        Meaning.PERMANENT,
        Verdict.REFUSED,
        is_outermost=True,
        remedy="the catalog does not accept the request: look into its log",
    ),
    Rule(frozenset({"CleanableFailure"}), verdict=Verdict.REFUSED, is_outermost=True),
    Rule(
        frozenset({"RESTException"}),
        Meaning.PERMANENT,
        Verdict.REFUSED,
        text=re.compile(r"\(code: 4(?!08|29)\d\d,"),
        is_outermost=True,
        remedy="the catalog does not accept the request: look into its log",
    ),
    Rule(
        frozenset({"RuntimeIOException"}),
        verdict=Verdict.REFUSED,
        text=re.compile("Failed to write json (to file|for): "),  # The metadata, before the catalog is asked.
        is_outermost=True,
    ),
    Rule(frozenset({"ForbiddenException", _UNAUTHORIZED}), Meaning.PERMANENT, remedy=_CATALOG),
    Rule(frozenset({"NoSuchTableException", "NoSuchNamespaceException"}), Meaning.MISSING),
    Rule(
        frozenset({"NoSuchWarehouseException"}),
        Meaning.PERMANENT,
        remedy="the catalog has no such warehouse: correct it in LAKEWRIGHT_CATALOGS",
    ),
    Rule(
        meaning=Meaning.UNSUPPORTED,
        # From Iceberg's own client of S3, from Hadoop's, and from neither.
        text=re.compile(
            r"(NoClassDefFoundError|ClassNotFoundException)"
            r".*(software[./]amazon[./]awssdk|org[./]apache[./]iceberg[./]aws)"
            r'|No FileSystem for scheme "?s3[an]?\b|S3AFileSystem not found'
        ),
        remedy="this actor has no jars for S3: set LAKEWRIGHT_ALLOW_S3=true for the actors (see docs/iceberg.md)",
        field="location",
        allowed="LAKEWRIGHT_ALLOW_S3=true",
    ),
    # A column of a type that Spark does not have.
    Rule(frozenset({"UnsupportedOperationException"}), Meaning.UNSUPPORTED, text=_OTHER_THAN_PAGES, field="schema"),
)


def is_token_refused(error: BaseException) -> bool:
    """Return whether the catalog did not accept who asks, as it does when a token is no longer valid."""
    return _UNAUTHORIZED in jvm_class_names(cause_of(error))


def refused(error: BaseException, location: str) -> LakewrightError:
    """Return our error for a commit that was certainly not made: a Conflict where others were first."""
    found = classify(error)
    if found in (Verdict.TAKEN, Verdict.BUSY) or _DROPPED in jvm_class_names(cause_of(error)):
        text = f"the rewrite of {location} was refused ({found}): {first_lines(cause_of(error))}; plan it again"
        return Conflict(text, kind=found)
    if is_token_refused(error):
        return RetryableError(f"{location}: the catalog no longer accepts the token of this run; nothing was committed")
    return translate(error, f"committing to {location}", so="nothing was committed")


FAILURES = JudgedBy(RULES, refused)
"""Meaning of exceptions of the JVM for tables of this format."""

classify = FAILURES.verdict
translate = FAILURES.translate
