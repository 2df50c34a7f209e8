"""The clustering columns of a table are known by its checksum, without a Spark job; else by the state of the table."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.clustered_table import clustering_columns
from actor.formats.delta.delta_scala import DeltaScala
from shared.errors import Unsupported
from tests.support.fake_delta_table import FakeChecksum

SCALA = cast("DeltaScala", SimpleNamespace(to_json=json.dumps))
OTHER = {"domain": "delta.rowTracking", "configuration": "{}"}


def domain(*columns: str, **more: Any) -> dict[str, Any]:
    text = json.dumps({"clusteringColumns": [[column] for column in columns]})
    return {"domain": "delta.clustering", "configuration": text, **more}


def columns(in_checksum: list[dict[str, Any]] | None, in_state: list[dict[str, Any]] | None = None) -> Any:
    checksum = FakeChecksum(1, 1, None, None, in_checksum)
    has_checksum = in_checksum is not None or in_state is None
    snapshot = SimpleNamespace(
        checksumOpt=lambda: SimpleNamespace(isDefined=lambda: has_checksum, get=lambda: checksum),
        domainMetadata=lambda: pytest.fail("a Spark job") if in_state is None else in_state,
    )
    return clustering_columns(SCALA, snapshot, "file:///t")


def test_a_checksum_names_the_clustering_columns() -> None:
    assert columns([OTHER, domain("a", "b")]) == (("a",), ("b",))


def test_without_a_checksum_the_state_names_them() -> None:
    assert columns(None, [OTHER, domain("a")]) == (("a",),)


@pytest.mark.parametrize("domains", [[], [OTHER], [domain()], [domain("a", removed=True)]])
def test_a_table_without_clustering_columns_is_not_touched(domains: list[dict[str, Any]]) -> None:
    with pytest.raises(Unsupported, match="CLUSTER BY NONE"):
        columns(domains)
