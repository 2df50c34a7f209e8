"""Delete files: how many there are, and how many of them are to be merged or converted.

A reader opens each one that applies to a data file, so many small ones cost each query a request per delete file.
"""

from dataclasses import dataclass

from shared.layout.eligibility import DecisionReason


class DeleteFilesReason(DecisionReason):
    """Why delete files are, or are not, merged."""

    MANY = "many_delete_files", "The delete files to be merged are `merge-deletes-at` or more."
    MANY_VALUES = "many_deletes_by_value", "The delete files by value are `convert-deletes-at` or more."
    FEW = (
        "few_delete_files",
        "The delete files to be merged are fewer than `merge-deletes-at`, those by value than `convert-deletes-at`.",
        "pruned_by_deletes",
    )
    NOT_KNOWN = (
        "delete_files_not_known",
        "There is no snapshot, or the format has no delete files (Delta).",
        "pruned_by_deletes",
    )


@dataclass(frozen=True, slots=True)
class DeleteFileCount:
    """Number of the live delete files by position of the newest snapshot, and how many are to be merged (`excess`).

    As each data file gets one of its own, there may be as many afterwards, or more. Where several become one, that one
    does not count. by_value: the live delete files by value.
    """

    count: int
    excess: int
    by_value: int = 0


def delete_files_need(files: DeleteFileCount | None, merge_at: int | None, convert_at: int | None) -> DeleteFilesReason:
    """Return whether there are so many delete files to be merged or converted; None: never, both: merged if any."""
    if files is None:
        return DeleteFilesReason.NOT_KNOWN
    if convert_at is not None and files.by_value >= convert_at:
        return DeleteFilesReason.MANY_VALUES
    at = 1 if merge_at is None and convert_at is None else merge_at
    return DeleteFilesReason.MANY if at is not None and files.excess >= at else DeleteFilesReason.FEW
