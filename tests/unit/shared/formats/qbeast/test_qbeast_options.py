"""The properties of both generations of documents, and what is said of values that cannot be used."""

from fractions import Fraction

import pytest

from shared.formats.qbeast.iterations import IndexOptions, Strategy
from shared.formats.qbeast.options import read_options
from shared.policy.properties import read_properties

AUTO = "use.optimization.autoOptimize."
UNINDEXED = AUTO + "optimizeUnindexedFiles."


@pytest.mark.parametrize(
    ("properties", "options"),
    [
        ({}, IndexOptions()),
        ({AUTO + "revisionId": "2"}, IndexOptions(revision=2)),
        ({"use.optimization.revision-id": "2"}, IndexOptions(revision=2)),
        ({"use.optimization.revision-id": "2", AUTO + "revisionId": "3"}, IndexOptions(revision=3)),
        ({UNINDEXED + "enabled": "false"}, IndexOptions(indexes_files=False)),
        ({UNINDEXED + "prioritize": "false"}, IndexOptions(indexes_first=False)),
        ({UNINDEXED + "batchBytes": "10000000"}, IndexOptions(batch_bytes=10_000_000)),
        ({UNINDEXED + "fromTimestamp": "1700000000000"}, IndexOptions(from_ms=1_700_000_000_000)),
        ({UNINDEXED + "fromTimestamp": "2023-11-14 22:13:20"}, IndexOptions(from_ms=1_700_000_000_000)),
        ({UNINDEXED + "fromTimestamp": "2023-11-14T23:13:20+01:00"}, IndexOptions(from_ms=1_700_000_000_000)),
        ({"use.optimization.bytes-per-iter": "0"}, IndexOptions(budget_bytes=0)),
        ({"use.optimization.bytes-per-iter": "2GB"}, IndexOptions(budget_bytes=2 << 30)),
        ({"use.optimization.revision-rewrite": "false"}, IndexOptions()),
        ({"use.optimization.revision-rewrite": "true"}, IndexOptions()),
        ({"lakewright.index-sample": "0.05"}, IndexOptions(sample=Fraction(1, 20))),
        ({"lakewright.index-sample": "off"}, IndexOptions()),
    ],
)
def test_a_property_sets_its_option(properties: dict[str, str], options: IndexOptions) -> None:
    assert read_options(properties) == (options, ())


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (AUTO + "revisionId", "latest", "a whole number"),
        (UNINDEXED + "enabled", "yes", "true or false"),
        (UNINDEXED + "batchBytes", "0", "1 byte or more"),
        (UNINDEXED + "fromTimestamp", "yesterday", "milliseconds since 1970"),
        ("use.optimization.revision-rewrite", "whole", "true or false"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_the_default_stays(name: str, value: str, reason: str) -> None:
    options, issues = read_options({name: value})
    assert options == IndexOptions()
    assert [(one.property, one.value) for one in issues] == [(name, value)]
    assert reason in issues[0].reason


def test_to_index_nothing_of_the_revision_without_an_index_is_a_contradiction() -> None:
    options, issues = read_options({AUTO + "revisionId": "0", UNINDEXED + "enabled": "false"})
    assert options.strategies == (Strategy.UNINDEXED,)
    assert "not to be indexed" in issues[0].reason


@pytest.mark.parametrize(
    ("text", "job_bytes"), [("0", 16 << 30), ("20000", 64 << 10), ("1 GB", 1 << 30), ("5000 GB", 1 << 40)]
)
def test_the_bytes_of_an_iteration_also_bound_a_job_and_are_never_an_error(text: str, job_bytes: int) -> None:
    layer = read_properties({"use.optimization.bytes-per-iter": text})
    assert (layer.values, layer.issues) == ({"max_bytes_per_job": job_bytes}, ())
