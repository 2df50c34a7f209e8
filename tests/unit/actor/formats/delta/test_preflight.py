"""A location whose log store cannot keep two writers apart is refused unless the operator vouches for it."""

import pytest

from actor.formats.delta.preflight import check_location, check_table
from shared.errors import Unsupported
from shared.jobs.payload import CHECKPOINT, CLUSTER, COMPACT, DEDUPLICATE, SORT, VACUUM
from shared.table import TableMetadata, TableProtocol


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_a_table_on_s3_needs_the_operators_word(scheme: str) -> None:
    check_location(f"{scheme}://lake/t", allow_s3=True)
    with pytest.raises(Unsupported, match="safe for a single driver only") as refused:
        check_location(f"{scheme}://lake/t", allow_s3=False)
    assert (refused.value.field, refused.value.allowed) == ("location", "LAKEWRIGHT_ALLOW_S3=true")


@pytest.mark.parametrize("location", ["file:///lake/t", "gs://lake/t", "abfss://c@a.dfs.core.windows.net/t"])
def test_a_store_that_puts_conditionally_needs_nothing(location: str) -> None:
    check_location(location, allow_s3=False)


@pytest.mark.parametrize("kind", ["", COMPACT, SORT, DEDUPLICATE])
def test_no_rewrite_of_ours_touches_a_clustered_table(kind: str) -> None:
    clustered = TableProtocol(1, 7, frozenset(), frozenset({"clustering", "domainMetadata"}))
    with pytest.raises(Unsupported, match="undo the clustering"):
        check_table("file:///t", TableMetadata("u"), clustered, kind)
    other = TableProtocol(3, 7, frozenset({"variantType"}), frozenset({"clustering", "variantType"}))
    for allowed in (CLUSTER, VACUUM, CHECKPOINT):
        check_table("file:///t", TableMetadata("u"), clustered, allowed)
        with pytest.raises(Unsupported, match="variantType"):
            check_table("file:///t", TableMetadata("u"), other, allowed)
