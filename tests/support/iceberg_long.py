"""The mark of tests of Iceberg that only `make test-iceberg` runs."""

import os

import pytest

long = pytest.mark.skipif(
    "LAKEWRIGHT_TEST_ICEBERG" not in os.environ, reason="no long suite of Iceberg asked for: make test-iceberg"
)
