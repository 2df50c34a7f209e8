"""Meaning of a failure of the JVM, whatever the table's format: one table of exceptions, and the error each becomes.

Two questions are asked. After a commit: is it certain that nothing was committed (`Verdict`)? At any time: can a retry
help, and what is to be done (`Meaning`)? The first rule that fits decides. A format has rules of its own for its
library's classes, which come before the rules for Java, Spark and the stores here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from actor.jvm.errors import Cause, causes, first_lines, matching_line
from actor.rewrite.model import Blame, NotAsked, Verdict
from shared.errors import LakewrightError, NoTable, PermanentError, RefusedFiles, RetryableError, Unsupported
from shared.refusals import RefusalReason


class Meaning(StrEnum):
    """Meaning of a failure outside of a commit."""

    REFUSED = "refused"  # Files that cannot be rewritten as they are: remembered.
    UNSUPPORTED = "unsupported"  # A table, or a place, that this release or this actor cannot work on.
    MISSING = "missing"  # There is no table.
    PERMANENT = "permanent"  # No retry helps: quarantined at once.
    TRANSIENT = "transient"  # A retry may help.


@dataclass(frozen=True, slots=True)
class Rule:
    """Exceptions that mean the same.

    kinds: simple names of classes, whose subclasses count; empty: any. text: what the message must contain.
    is_outermost: a cause of another exception does not count. within: what some exception of the chain must say.
    remedy: what to do, as half a sentence.
    reason: of refused files. field, allowed: of an unsupported table.
    """

    kinds: frozenset[str] = frozenset()
    meaning: Meaning = Meaning.TRANSIENT
    verdict: Verdict = Verdict.UNKNOWN
    text: re.Pattern[str] | None = None
    is_outermost: bool = False
    within: re.Pattern[str] | None = None
    remedy: str = ""
    reason: RefusalReason = RefusalReason.UNSUPPORTED
    field: str = ""
    allowed: str = ""

    def fits(self, chain: Sequence[Cause]) -> bool:
        """Return whether an exception with these causes, itself first, is one of these."""
        if self.within is not None and not any(self.within.search(one.text) for one in chain):
            return False
        return any(
            (not self.kinds or bool(self.kinds & one.kinds))
            and (self.text is None or self.text.search(f"{one.name}: {one.text}") is not None)
            for one in (chain[:1] if self.is_outermost else chain)
        )


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


_CONTRADICTIONS = _kinds(
    *("NullPointerException", "ClassCastException", "IndexOutOfBoundsException", "NegativeArraySizeException"),
    *("IllegalArgumentException", "UnsupportedOperationException", "ArithmeticException", "MatchError"),
    *("NotImplementedError", "NotSerializableException", "DateTimeException", "ArrayStoreException"),
)

_CODEC = "this actor has no codec for these files: write them again with another one"
_DAMAGED = "restore these files from a backup, or delete their rows"
_CREDENTIALS = "check the permissions of the actor's credentials on the store"

COMMON: tuple[Rule, ...] = (
    # What a token, a clock, the network or a server under load is to blame for, whatever it is a cause of.
    Rule(text=re.compile(r"ExpiredToken|TokenRefreshRequired|RequestTimeTooSkewed|RequestExpired|RequestTimeout")),
    Rule(
        _kinds(
            *("SocketException", "SocketTimeoutException", "UnknownHostException", "SSLException", "TimeoutException"),
            *("NoHttpResponseException", "ConnectionClosedException", "ConnectTimeoutException", "EOFException"),
            *("InterruptedException", "InterruptedIOException", "ClosedByInterruptException", "AbortedException"),
            *("AWSServiceThrottledException", "AWSStatus500Exception", "AWSNoResponseException", "SafeModeException"),
            *("ApiCallTimeoutException", "ApiCallAttemptTimeoutException", "RejectedExecutionException"),
        )
    ),
    Rule(
        meaning=Meaning.PERMANENT,
        text=re.compile(r"\bInvalidObjectState"),
        remedy="objects of the table are archived: restore them in the store",
    ),
    # Who may not, may not the next time either.
    Rule(
        _kinds(
            *("AccessDeniedException", "AccessControlException", "PathAccessDeniedException"),
            "PathPermissionException",
        ),
        Meaning.PERMANENT,
        remedy=_CREDENTIALS,
    ),
    Rule(
        _kinds(
            *("AwsServiceException", "StorageException", "HttpResponseException", "AbfsRestOperationException"),
            *("ApiException", "MetaException"),
        ),
        Meaning.PERMANENT,
        text=re.compile(
            r"[Ss]tatus [Cc]ode:? 40[13]\b|\b403\b|does not have storage\.\S+ access|AccessControlException"
        ),
        remedy=_CREDENTIALS,
    ),
    Rule(
        _kinds("UnsupportedFileSystemException"),
        Meaning.PERMANENT,
        remedy="this actor has no file system for the scheme of the location: add its jar, or correct the location",
    ),
    Rule(
        _kinds("UnknownStoreException", "NoSuchBucketException"),
        Meaning.PERMANENT,
        remedy="the bucket does not exist: correct the table's location, or create it",
    ),
    Rule(
        _kinds(
            *("AWSRedirectException", "AWSUnsupportedFeatureException", "UnsupportedRequestException"),
            *("NoVersionAttributeException", "InstantiationIOException", "AWSBadRequestException"),
        ),
        Meaning.PERMANENT,
        remedy="the store does not do this as it is set up: correct endpoint, region and the options of s3a",
    ),
    # Files that nothing but other files, another schema or another release can help.
    Rule(
        meaning=Meaning.REFUSED,
        text=re.compile("Unsupported encoding: "),
        remedy="Spark does not read this encoding: write these files again in another one",
        reason=RefusalReason.ENCODING,
    ),
    Rule(
        meaning=Meaning.REFUSED,
        text=re.compile(
            r"\bDamagedInput\b|CRC checksum verification failed|is not a Parquet file|differs from its checksum|"
            r"\bChecksumException: |corrupted file: |FAILED_TO_UNCOMPRESS|MalformedInputException: .*offset=\d|"
            # zlib, in Java's words.
            r"(IO|Zip|DataFormat)Exception: (invalid|incorrect|unknown|too many) .*"
            r"(distance|literal|length|block|code|check|window|compression method|symbols)|"
            r"can not read class (org\.apache\.iceberg\.shaded\.)?org\.apache\.parquet\.format\."
        ),
        remedy=_DAMAGED,
        reason=RefusalReason.DAMAGED,
    ),
    Rule(
        _kinds("ZstdIOException", "ZstdException", "LZ4Exception"),
        Meaning.REFUSED,
        remedy=_DAMAGED,
        reason=RefusalReason.DAMAGED,
    ),
    Rule(
        _kinds("ParquetCryptoRuntimeException"),
        Meaning.REFUSED,
        remedy="these files are encrypted: rewrite them in the engine that has their keys",
    ),
    Rule(
        _kinds("SchemaColumnConvertNotSupportedException"),
        Meaning.REFUSED,
        remedy="the files store the column in a type that Spark does not read as the table's: write them again",
        reason=RefusalReason.TYPES,
    ),
    Rule(
        meaning=Meaning.REFUSED,
        text=re.compile(r"_ANCIENT_DATETIME|PARQUET_TYPE_(NOT_SUPPORTED|NOT_RECOGNIZED|ILLEGAL)"),
        remedy="write these files again with a current writer",
        reason=RefusalReason.TYPES,
    ),
    Rule(
        _kinds("CompressionCodecNotSupportedException"),
        Meaning.REFUSED,
        remedy=_CODEC,
        reason=RefusalReason.CODEC,
    ),
    Rule(
        meaning=Meaning.REFUSED,
        text=re.compile(r"(Brotli|Lzo|LZO)\w*Codec\S* (was )?not found|UnsupportedCodec"),
        remedy=_CODEC,
        reason=RefusalReason.CODEC,
    ),
    # Contradictions in code or data, which the same input leads to again.
    Rule(
        _CONTRADICTIONS,
        Meaning.REFUSED,
        within=re.compile("FAILED_READ_FILE"),
        remedy="Spark cannot read these files: compare them with a backup, or write them again",
    ),
    Rule(
        _CONTRADICTIONS,
        Meaning.PERMANENT,
        remedy="the same input fails again; report it with the actor's log",
    ),
)
"""Rules for exceptions of Java, Spark, Hadoop and the clients of object stores."""

_OTHERWISE = Rule()

_UNREADABLE = re.compile(r"FAILED_READ_FILE|Could not read footer: java\.lang\.RuntimeException|DamagedInput")
"""An input: in Spark's error, in parquet-java's and in ours (`DamagedInput.java`)."""

_FOR_ITSELF = re.compile(
    rf"{_UNREADABLE.pattern}|\b(File)?NotFoundException|No space left on device|Disk quota exceeded"
)
"""Meanings that say nothing of groups that are written already."""


def judge(error: BaseException, rules: Iterable[Rule]) -> Rule:
    """Return the rule of an exception: the first of the format's, then of those for all formats, that fits."""
    chain = causes(cause_of(error))
    return next((rule for rule in (*rules, *COMMON) if rule.fits(chain)), _OTHERWISE)


def verdict(error: BaseException, rules: Iterable[Rule]) -> Verdict:
    """Return what a failed attempt to commit means."""
    found = judge(error, rules).verdict
    return Verdict.REFUSED if found is Verdict.UNKNOWN and isinstance(error, NotAsked) else found


def explained(error: BaseException, doing: str, rules: Iterable[Rule], *, so: str = "") -> LakewrightError:
    """Return our error for a failure; `doing` names table and work, `so` is the consequence for the table."""
    rule = judge(error, rules)
    text = "; ".join(part for part in (f"{doing}: {first_lines(cause_of(error))}", so, rule.remedy) if part)
    match rule.meaning:
        case Meaning.REFUSED:
            return RefusedFiles(text, reason=rule.reason, field=rule.field)
        case Meaning.UNSUPPORTED:
            return Unsupported(text, field=rule.field, allowed=rule.allowed)
        case Meaning.MISSING:
            return NoTable(text, field="location")
        case Meaning.PERMANENT:
            return PermanentError(text)
        case Meaning.TRANSIENT:  # pragma: no branch - mypy proves that there is no other meaning
            return RetryableError(text)


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """Meaning of exceptions by the rules of a format (see `actor.rewrite.ports.Failures`)."""

    rules: tuple[Rule, ...]
    refused: Callable[[BaseException, str], LakewrightError]

    def verdict(self, error: BaseException) -> Verdict:
        """Return what a failed attempt to commit means."""
        return verdict(error, self.rules)

    def blame(self, error: BaseException) -> Blame:
        """Return what the failure of one group says of the others."""
        if judge(error, self.rules).meaning is Meaning.REFUSED or matching_line(error, _UNREADABLE):
            return Blame.FILES
        return Blame.STORE if _FOR_ITSELF.search(first_lines(error)) else Blame.ALL

    def text(self, error: BaseException) -> str:
        """Return what an exception says, and each of its causes."""
        return first_lines(error)

    def translate(self, error: BaseException, doing: str, *, so: str = "") -> LakewrightError:
        """Return our error for a failure outside of a commit."""
        return explained(error, doing, self.rules, so=so)

    @contextmanager
    def translated(self, doing: str) -> Iterator[None]:
        """Let our own errors pass, and turn errors of libraries into ours."""
        try:
            yield
        except LakewrightError:
            raise
        except Exception as error:
            raise self.translate(error, doing) from error


def cause_of(error: BaseException) -> BaseException:
    """Return what happened: an exception itself, or what ended a commit before it was asked for."""
    return error.__cause__ or error if isinstance(error, NotAsked) else error
