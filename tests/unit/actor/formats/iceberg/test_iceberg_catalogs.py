"""Options of a catalog reach Java as the settings mean them."""

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.catalogs import java_options


@pytest.mark.parametrize("is_first", [True, False])
def test_an_option_for_actors_replaces_the_one_for_both_in_any_order(is_first: bool) -> None:
    """Otherwise actors open another catalog than the deciders follow, where one spells the other's address."""
    both = [("uri", "sqlite:///c.db"), ("jvm.uri", "jdbc:sqlite:c.db")]
    options = dict(both[::-1] if is_first else both)
    assert java_options({"type": "sql", **options, "warehouse": "w"}) == {"uri": "jdbc:sqlite:c.db", "warehouse": "w"}
