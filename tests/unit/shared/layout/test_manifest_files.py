"""How many manifests a table has, and how many would do."""

import pytest

from shared.layout.manifest_files import ManifestFiles, ManifestReason, manifests_need

KIB = 1024


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ([], ManifestFiles(0, 0, 0)),
        ([[]], ManifestFiles(0, 0, 0)),
        ([[0]], ManifestFiles(1, 0, 1)),
        ([[7] * 10], ManifestFiles(10, 70, 1)),
        ([[7] * 10, [7]], ManifestFiles(11, 77, 2)),
        ([[60, 60, 60]], ManifestFiles(3, 180, 2)),
        ([[100, 100]], ManifestFiles(2, 200, 2)),
    ],
)
def test_each_group_needs_one_manifest_or_as_many_as_its_bytes_fill(
    groups: list[list[int]], found: ManifestFiles
) -> None:
    assert ManifestFiles.of(groups, 100) == found
    assert found.excess == found.count - found.needed


def test_a_target_of_no_bytes_is_one_of_a_byte() -> None:
    assert ManifestFiles.of([[2, 2]], 0).needed == 4
    assert ManifestFiles(2, 4, 4).excess == 0


def test_the_mean_size_of_no_manifests_is_nothing() -> None:
    assert (ManifestFiles(0, 0, 0).mean_bytes, ManifestFiles(3, 10, 1).mean_bytes) == (0, 3)


@pytest.mark.parametrize(
    ("files", "at", "reason"),
    [
        (None, 10, ManifestReason.MANIFESTS_NOT_KNOWN),
        (ManifestFiles(10, 70, 1), 10, ManifestReason.FEW),
        (ManifestFiles(11, 70, 1), 10, ManifestReason.MANY),
        (ManifestFiles(2, 70, 1), None, ManifestReason.MANY),
        (ManifestFiles(1, 70, 1), None, ManifestReason.FEW),
    ],
)
def test_a_rewrite_is_due_where_so_many_are_superfluous(
    files: ManifestFiles | None, at: int | None, reason: ManifestReason
) -> None:
    assert manifests_need(files, at) is reason
    assert reason.message.endswith(".")
