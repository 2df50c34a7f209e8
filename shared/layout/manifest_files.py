"""Manifests of a table whose metadata list its files in many of them: how many there are, and how many would do.

Each commit writes a manifest or more. A reader opens all that its filter does not rule out, so many small ones cost
each query a request per manifest.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from shared.layout.eligibility import DecisionReason

DEFAULT_TARGET_BYTES = 8 << 20
"""Iceberg's default of `commit.manifest.target-size-bytes`."""


class ManifestReason(DecisionReason):
    """Why manifests are, or are not, rewritten."""

    MANY = "many_manifests", "The manifests exceed the number that their bytes need by `rewrite-manifests-at` or more."
    FEW = (
        "few_manifests",
        "The manifests exceed the number that their bytes need by less than `rewrite-manifests-at`.",
        "pruned_by_manifests",
    )
    MANIFESTS_NOT_KNOWN = (
        "manifests_not_known",
        "There is no snapshot, or no manifests to rewrite (Delta; Iceberg version 3).",
        "pruned_by_manifests",
    )


@dataclass(frozen=True, slots=True)
class ManifestFiles:
    """Number and bytes of the manifests of the newest snapshot, and the number of them that so many bytes need."""

    count: int
    bytes: int
    needed: int

    @staticmethod
    def of(groups: Iterable[Iterable[int]], target_bytes: int) -> "ManifestFiles":
        """Count manifests by their sizes in bytes; manifests of different groups cannot be merged into one."""
        sizes = [tuple(group) for group in groups]
        target = max(1, target_bytes)
        return ManifestFiles(
            sum(map(len, sizes)), sum(map(sum, sizes)), sum(max(1, -(-sum(one) // target)) for one in sizes if one)
        )

    @property
    def excess(self) -> int:
        """How many fewer there would be after a rewrite."""
        return max(0, self.count - self.needed)

    @property
    def mean_bytes(self) -> int:
        """Mean size in bytes, 0 where there are none."""
        return self.bytes // self.count if self.count else 0


def manifests_need(files: ManifestFiles | None, at: int | None) -> ManifestReason:
    """Return whether manifests are to be rewritten where at least so many are superfluous; None: where one is."""
    if files is None:
        return ManifestReason.MANIFESTS_NOT_KNOWN
    return ManifestReason.MANY if files.excess >= (1 if at is None else at) else ManifestReason.FEW
