"""The table of the self-test: where it lies."""

from typing import cast

import pytest
from pyspark.sql import SparkSession

from actor.formats.delta import self_test as module
from actor.ports import TableEngine


def test_the_table_of_the_self_test_lies_in_a_hidden_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciders register nothing there, though the location that actors share lies below a root."""
    found: list[str] = []
    monkeypatch.setattr(module, "_try", lambda _spark, _engine, location: found.append(location))
    monkeypatch.setattr(module, "_remove", lambda _spark, location: found.append(location))
    module.self_test(cast("SparkSession", None), cast("TableEngine", None), "s3://lake/self-test")
    assert len(set(found)) == 1
    assert found[0].startswith("s3://lake/self-test/_")
