"""Delete files that name rows by position: how many there are, and how many of them are to be merged.

A reader opens each one that applies to a data file, so many small ones cost each query a request per delete file.
"""

from dataclasses import dataclass

from shared.layout.eligibility import DecisionReason


class DeleteFilesReason(DecisionReason):
    """Why delete files are, or are not, merged."""

    MANY = "many_delete_files", "The delete files to be merged are `merge-deletes-at` or more."
    FEW = "few_delete_files", "The delete files to be merged are fewer than `merge-deletes-at`.", "pruned_by_deletes"
    NOT_KNOWN = (
        "delete_files_not_known",
        "There is no snapshot, or the format has no delete files (Delta).",
        "pruned_by_deletes",
    )


@dataclass(frozen=True, slots=True)
class DeleteFileCount:
    """Number of the live delete files by position of the newest snapshot, and how many are to be merged (`excess`).

    As each data file gets one of its own, there may be as many afterwards, or more. Where several become one, that one
    does not count.
    """

    count: int
    excess: int


def delete_files_need(files: DeleteFileCount | None, at: int | None) -> DeleteFilesReason:
    """Return whether delete files are to be merged where at least so many are to be; None: where one is."""
    if files is None:
        return DeleteFilesReason.NOT_KNOWN
    return DeleteFilesReason.MANY if files.excess >= (1 if at is None else at) else DeleteFilesReason.FEW
