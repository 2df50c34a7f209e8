"""CATALOG.NAMESPACE.TABLE is a location where such a catalog is in the settings, and a registered name elsewhere."""

import pytest

from services.cli.locations import is_location, location_of


def test_a_name_in_one_of_the_catalogs_is_a_location(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWRIGHT_CATALOGS", '{"prod": {}}')
    assert is_location("prod.sales.orders")
    assert location_of("prod.sales.eu.orders") == "catalog://prod/sales/eu/orders"
    assert location_of("catalog://prod/sales/orders") == "catalog://prod/sales/orders"
    for name in ("prod.orders", "other.sales.orders", "prod..orders", "orders"):
        assert not is_location(name)


def test_without_catalogs_every_name_is_that_of_a_registered_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEWRIGHT_CATALOGS", raising=False)
    assert not is_location("prod.sales.orders")
