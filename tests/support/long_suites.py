"""`pytest.mark.long("page")`: a test that `make test` leaves to a target of its own, because it takes minutes.

`pytest --long page` runs them beside the others, and `--long all` those of every suite. Where a run starts another one,
`LAKEWRIGHT_TEST_LONG=all` says the same.
"""

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

TARGETS: Mapping[str, str] = {
    "altered": "test-altered",
    "care": "test-care",
    "cluster": "test-cluster",
    "contracts": "test-contracts",
    "crashes": "test-crashes",
    "iceberg": "test-iceberg",
    "images": "test-images",
    "kafka": "test-kafka",
    "page": "test-page",
    "s3": "test-s3",
    "spark-cluster": "test-spark-cluster",
}
"""Suites, with the target of the Makefile that runs each."""
ALL = "all"
VARIABLE = "LAKEWRIGHT_TEST_LONG"

SPELLINGS = {suite: re.compile(rf'"{suite}"') for suite in TARGETS} | {
    "contracts": re.compile(r'"contracts"|\bbeyond\('),
    "s3": re.compile(r'"s3"|\bmark\.s3\b'),
}
"""How a file of tests, or the conftest.py beside it, spells that some of its tests are of a suite."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="append", default=[], choices=[*TARGETS, ALL], help="also run the long tests of this suite"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long(suite): takes minutes, and runs only with --long SUITE")


@cache
def spells(path: Path, suite: str) -> bool:
    """Return whether tests of a file may be of a suite, without loading the file."""
    near = (path, path.with_name("conftest.py"))
    return any(SPELLINGS[suite].search(one.read_text(encoding="utf-8")) for one in near if one.is_file())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of no asked suite if only long tests run: to load all of them takes a minute of CPU."""
    asked = set(config.getoption("long"))
    is_left_out = (
        config.option.markexpr in ("long", "s3")
        and collection_path.suffix == ".py"
        and asked <= set(TARGETS)
        and not any(spells(collection_path, suite) for suite in asked)
    )
    return is_left_out or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests of suites that were not asked for; a suite that is not in the table is an error."""
    asked = [*config.getoption("long"), os.environ.get(VARIABLE)]
    for item in items:
        suites = [mark.args[0] for mark in item.iter_markers("long")]
        unknown = [suite for suite in suites if suite not in TARGETS]
        if unknown:
            raise pytest.UsageError(f"{item.nodeid}: no long suite is called {unknown[0]}; see {__name__}")
        for suite in (*suites, *(["s3"] if item.get_closest_marker("s3") else [])):
            if not spells(item.path, suite):
                raise pytest.UsageError(f"{item.nodeid}: its file does not spell {suite}; see SPELLINGS in {__name__}")
        if suites and ALL not in asked and not set(suites) & set(asked):
            item.add_marker(pytest.mark.skip(reason=f"a long test: make {TARGETS[suites[0]]}"))


def pairs_first(*choices: tuple[Any, Any]) -> list[tuple[Any, ...]]:
    """Return all combinations, first the half of them that has each choice, and of three or more each two together."""
    picks = sorted(product((0, 1), repeat=len(choices)), key=lambda picked: sum(picked) % 2)
    return [tuple(pair[one] for pair, one in zip(choices, picked, strict=True)) for picked in picks]


def beyond(first: int, values: Iterable[Any], suite: str = "contracts") -> list[Any]:
    """Return parameters of a test of which all but the first are long; a tuple is several parameters."""
    rest = iter(values)
    short = list(islice(rest, first))
    marks = pytest.mark.long(suite)
    return [*short, *(pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks) for value in rest)]
