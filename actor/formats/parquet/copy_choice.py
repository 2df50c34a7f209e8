"""Choice between copying a group's row groups as bytes and encoding its rows: one choice, and one way to copy.

Whatever is not provably exact is encoded. What is known without footers is asked first, then what footers say of each
file and its columns, how the files differ, and last what codecs and sizes say. What a task finds to be an obstacle only
while it copies, as pages that do not fit their footer, sends the group to the encoder like what is known before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_rules import (
    CopyLimits,
    CopyRule,
    EncodeReason,
    NotCopied,
    is_final,
    reason_between_footers,
    reason_in_codecs,
    reason_in_footers,
    reason_in_sizes,
)
from actor.formats.parquet.footer_summary import FooterSummary
from shared.layout.planner import RewriteMode

G = TypeVar("G")
O = TypeVar("O")  # noqa: E741 - an output

_GREW_FULL = "full"  # The task's word for an output that did not stay below the full size.


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCandidate:
    """A group that may be copied; each format adds what its metadata say of the table and of the inputs.

    mode: of the group's rewrite. bytes: of the inputs. full_bytes: size from which a file counts as full; 0: each does.
    files: what the footers say, None as long as they are not read.
    """

    mode: RewriteMode
    bytes: int
    full_bytes: int
    is_allowed: bool = True
    is_available: bool = True
    files: Sequence[FooterSummary] | None = None

    @property
    def codec(self) -> str | None:
        """The codec that the table asks for, None if it asks for none."""
        raise NotImplementedError

    @property
    def with_vectors(self) -> bool:
        """True where some reader would apply deletion vectors to other rows of an output with small row groups."""
        return False

    def in_metadata(self) -> Mapping[EncodeReason, bool]:
        """Return the reasons that are known without footers, in order, and whether each holds."""
        raise NotImplementedError

    def in_columns(self, files: Sequence[FooterSummary]) -> EncodeReason | None:
        """Return why columns of any of the files forbid to join it to others."""
        raise NotImplementedError

    def with_footers(self, files: Sequence[FooterSummary]) -> Self:
        """Return the same candidate when its footers are known."""
        return replace(self, files=files)


def reason_to_encode(candidate: CopyCandidate, limits: CopyLimits) -> EncodeReason | None:
    """Return why a group has to be encoded, None if copying its row groups is exact and leaves a file that reads well.

    Without footers only what the metadata hold is considered.
    """
    known = {
        EncodeReason.SWITCHED_OFF: not candidate.is_allowed,
        EncodeReason.UNAVAILABLE: not candidate.is_available,
        **candidate.in_metadata(),
    }
    found = next((reason for reason, holds in known.items() if holds), None)
    files = candidate.files
    if found is not None or files is None:
        return found
    final = is_final(candidate.mode, candidate.bytes, candidate.full_bytes)
    return (
        reason_in_footers(files)
        or candidate.in_columns(files)
        or reason_between_footers(files)
        or reason_in_codecs(files, candidate.codec)
        or reason_in_sizes(files, final=final, limits=limits, with_vectors=candidate.with_vectors)
    )


class RowGroupCopier(Generic[G, O]):
    """Copies groups of one table, where that is exact: one task for each, in which nothing is decoded.

    Safe to use from several threads.
    """

    def __init__(self, rule: CopyRule, classes: ParquetClasses) -> None:
        self._rule = rule
        self._classes = classes

    def choose(self, live: G) -> CopyCandidate | NotCopied:
        """Return a group that can be copied with its footers, or why it has to be encoded."""
        raise NotImplementedError

    def run(self, live: G, files: Sequence[FooterSummary], end_bytes: int) -> Mapping[str, Any]:
        """Copy the group into a file below `end_bytes` (0: of any size); return what the task says of it."""
        raise NotImplementedError

    def output(self, live: G, files: Sequence[FooterSummary], result: Mapping[str, Any]) -> O:
        """Return the task's file as an output; deletes it if that fails."""
        raise NotImplementedError

    def reason(self, candidate: CopyCandidate) -> EncodeReason | None:
        """Return why a group has to be encoded, as far as it is known."""
        return reason_to_encode(candidate, self._rule.limits)

    def copy(self, live: G) -> O | NotCopied:
        """Copy the group into one file, or return why it has to be encoded."""
        candidate = self.choose(live)
        if isinstance(candidate, NotCopied):
            return candidate
        # Row groups may be small because the output stays below the full size: the task makes sure that it does.
        if_full, files = self.reason(replace(candidate, full_bytes=0)), candidate.files or ()
        result = self._classes.run(lambda: self.run(live, files, self._rule.full_bytes if if_full else 0))
        if result is None:
            return NotCopied(EncodeReason.UNAVAILABLE)
        if "obstacle" in result:
            grew = if_full if result["obstacle"] == _GREW_FULL else None
            return NotCopied(grew or EncodeReason(result["obstacle"]), files)
        return self.output(live, files, result)
