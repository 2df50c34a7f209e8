"""Upkeep of a table's metadata, which changes neither rows nor data files: one description of each kind.

Actions, requests with their dry runs, notes and refusals follow from it. A kind is named as its job is, such as
`merge_deletes`; from when on it is wanted is the policy's `merge_deletes_at`, the property `merge-deletes-at`.
"""

from dataclasses import dataclass
from fractions import Fraction

from shared.layout.eligibility import DecisionReason
from shared.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class UpkeepFound:
    """Number of manifests, delete files or rows, how many of them a run would save or renew (`excess`), and bytes.

    Of delete files, whose bytes are not counted, there may be as many after a merge, because each data file gets one of
    its own. Where several become one, that one is not in excess. Neither is what the last run `refused`, until that may
    have changed.
    """

    count: int
    excess: int
    bytes: int = 0
    refused: int = 0

    @property
    def share(self) -> Fraction:
        """Excess as a share of what was counted; 0 where that is nothing."""
        return Fraction(self.excess, self.count) if self.count else Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepKind:
    """A kind of upkeep: its reasons, and its texts.

    summary, text: as `TableRequest` has them. found_text: a sentence about what was found, with the places `count`,
    `excess`, `kept` and `bytes`. lacking: what tables of other formats have none of. renews_all: a run reads all that
    the table has, so it is charged with its bytes, and its setting is a share of what was counted.
    """

    kind: str
    due: DecisionReason
    not_due: DecisionReason
    not_known: DecisionReason
    summary: str
    text: str
    found_text: str
    lacking: str
    renews_all: bool = False

    @property
    def request(self) -> str:
        """Name of the request, and of the command."""
        return self.kind.replace("_", "-")

    @property
    def property_name(self) -> str:
        """Name of the property that switches it on."""
        return f"{self.request}-at"

    def at(self, policy: Policy) -> Fraction | int | None:
        """Return from when on the policy wants it; None: never."""
        wanted: Fraction | int | None = getattr(policy, f"{self.kind}_at")
        return wanted

    def need(self, found: UpkeepFound | None, policy: Policy) -> DecisionReason:
        """Return whether it is due where this was found; where the policy never wants it, as soon as a run helps."""
        if found is None:
            return self.not_known
        amount = found.share if self.renews_all else found.excess
        return self.due if amount and amount >= (self.at(policy) or 0) else self.not_due

    def describe(self, found: UpkeepFound) -> str:
        """Return what was found as a sentence."""
        kept = found.count - found.excess
        text = self.found_text.format(count=found.count, excess=found.excess, kept=kept, bytes=found.bytes)
        return f"{text} The last run refused {found.refused} of them, which do not count." if found.refused else text


class ManifestReason(DecisionReason):
    """Why manifests are, or are not, rewritten."""

    MANY = "many_manifests", "The manifests exceed the number that their bytes need by `rewrite-manifests-at` or more."
    FEW = (
        "few_manifests",
        "The manifests exceed the number that their bytes need by less than `rewrite-manifests-at`.",
        "pruned_by_manifests",
    )
    NOT_KNOWN = (
        "manifests_not_known",
        "There is no snapshot, or no manifests to rewrite (Delta).",
        "pruned_by_manifests",
    )


class StatisticsReason(DecisionReason):
    """Why statistics of columns are, or are not, computed."""

    OLD = (
        "statistics_old",
        "There are no statistics of columns, or the share of rows that changed since reaches `compute-statistics-at`.",
    )
    NEW = (
        "statistics_new",
        "The share of rows that changed since the newest statistics is below `compute-statistics-at`.",
        "pruned_by_statistics",
    )
    NOT_KNOWN = (
        "statistics_not_known",
        "There is no snapshot, its writer counts no rows, or the format has no place for statistics (Delta).",
        "pruned_by_statistics",
    )


class DeleteFilesReason(DecisionReason):
    """Why delete files are, or are not, merged."""

    MANY = "many_delete_files", "The delete files to be merged are `merge-deletes-at` or more."
    FEW = "few_delete_files", "The delete files to be merged are fewer than `merge-deletes-at`.", "pruned_by_deletes"
    NOT_KNOWN = (
        "delete_files_not_known",
        "There is no snapshot, or the format has no delete files (Delta).",
        "pruned_by_deletes",
    )


class ConversionReason(DecisionReason):
    """Why delete files by value are, or are not, converted."""

    MANY = "many_deletes_by_value", "The delete files by value are `convert-deletes-at` or more."
    FEW = (
        "few_deletes_by_value",
        "The delete files by value are fewer than `convert-deletes-at`.",
        "pruned_by_conversion",
    )
    NOT_KNOWN = (
        "deletes_by_value_not_known",
        "There is no snapshot, or the format has no delete files by value (Delta).",
        "pruned_by_conversion",
    )


REWRITE_MANIFESTS = UpkeepKind(
    kind="rewrite_manifests",
    due=ManifestReason.MANY,
    not_due=ManifestReason.FEW,
    not_known=ManifestReason.NOT_KNOWN,
    summary="Rewrite the manifests of a table",
    text="Write the manifests of an Iceberg table again, as few as their bytes need.",
    found_text="Manifests of its snapshot: {count} with {bytes} bytes; {kept} would be enough.",
    lacking="manifests",
)
"""Many small manifests cost each query a request per manifest that its filter does not rule out."""

COMPUTE_STATISTICS = UpkeepKind(
    kind="compute_statistics",
    due=StatisticsReason.OLD,
    not_due=StatisticsReason.NEW,
    not_known=StatisticsReason.NOT_KNOWN,
    summary="Compute statistics of the columns of a table",
    text="Compute statistics of the columns of an Iceberg table, if a row has changed since the last.",
    found_text="Since the newest statistics of columns, {excess} of {count} rows changed.",
    lacking="place for statistics of columns",
    renews_all=True,
)
"""Planners use them, such as numbers of distinct values. Where there are none, all rows count as changed."""

MERGE_DELETES = UpkeepKind(
    kind="merge_deletes",
    due=DeleteFilesReason.MANY,
    not_due=DeleteFilesReason.FEW,
    not_known=DeleteFilesReason.NOT_KNOWN,
    summary="Merge the delete files of a table",
    text="Merge the delete files by position of an Iceberg table, without rewriting data.",
    found_text="Delete files by position of its snapshot: {count}, of which {excess} are to be merged.",
    lacking="delete files",
)
"""A reader opens each delete file that applies to a data file: many small ones cost each query many requests."""

CONVERT_DELETES = UpkeepKind(
    kind="convert_deletes",
    due=ConversionReason.MANY,
    not_due=ConversionReason.FEW,
    not_known=ConversionReason.NOT_KNOWN,
    summary="Convert the deletes by value of a table",
    text="Convert the deletes by value of an Iceberg table into positions, and merge those, without rewriting data.",
    found_text="Delete files by value of its snapshot: {count}.",
    lacking="delete files by value",
)
"""A reader compares each row of older data files with all of them; positions name the rows."""

UPKEEP = (REWRITE_MANIFESTS, COMPUTE_STATISTICS, MERGE_DELETES, CONVERT_DELETES)
"""All kinds, in the order of their evaluation."""
