"""Words of other systems about a table's care: each is obeyed, or refused with advice; none is dropped silently.

Amoro's are those of its class TableProperties that are about optimizing and cleaning; its words about reading, writing,
watermarks and log stores are for engines. Qbeast's are those of its table properties and of its optimization settings.
"""

from fractions import Fraction
from typing import Any

import pytest

from shared.policy.names import FOREIGN, MANUAL, QBEAST_SWITCH
from shared.policy.policy import MIB, Policy
from shared.policy.properties import is_stopped_by_qbeast, read_properties
from shared.policy.property_table import NAMES
from shared.policy.refused_properties import REFUSED

OBEYED: list[tuple[str, str, str, Any]] = [
    ("self-optimizing.enabled", "false", "enabled", False),
    ("self-optimizing.group", "night", "queue", "night"),
    ("self-optimizing.quota", "0.5", "quota", 0.5),
    ("self-optimizing.target-size", "134217728", "target_bytes", 128 * MIB),
    ("self-optimizing.max-task-size-bytes", "134217728", "max_bytes_per_job", 128 * MIB),
    ("self-optimizing.fragment-ratio", "8", "fan_in", 8),
    ("self-optimizing.min-target-size-ratio", "0.75", "full_file_threshold", 0.75),
    ("self-optimizing.minor.trigger.file-count", "12", "min_input_files", 12),
    ("self-optimizing.major.trigger.duplicate-ratio", "0.1", "delete_ratio_threshold", Fraction(1, 10)),
    ("self-optimizing.full.trigger.interval", "3600000", "full_rewrite_interval_s", 3_600),
    ("self-optimizing.minor.trigger.interval", "3600000", "compact_interval_s", 3_600),
    ("self-optimizing.major.trigger.interval", "86400000", "compact_interval_s", 86_400),
    ("self-optimizing.filter", "dt > '2026'", "filter", "dt > '2026'"),
    ("snapshot.keep.duration", "720min", "retain_s", 43_200),
    ("snapshot.base.keep.minutes", "720", "retain_s", 43_200),
    ("write.target-file-size-bytes", "134217728", "target_bytes", 128 * MIB),
    ("use.optimization.autoOptimize.enabled", "true", "enabled", True),
    ("use.optimization.bytes-per-iter", "1073741824", "max_bytes_per_job", 1024 * MIB),
]

ADVISED: list[tuple[str, str, str]] = [
    ("self-optimizing.execute.num-retries", "5", "max-attempts"),
    ("self-optimizing.num-retries", "5", "max-attempts"),
    ("self-optimizing.allow-partial-commit", "true", "each file group"),
    ("self-optimizing.max-file-count", "10000", "lakewright.max-bytes-per-job"),
    ("self-optimizing.full.rewrite-all-files", "true", "full rewrite leaves files alone"),
    ("self-optimizing.min-plan-interval", "60000", "plans need no pause"),
    ("self-optimizing.refresh-event.identifier", "default", "docs/events"),
    ("table-expire.enabled", "true", "lakewright.vacuum=on"),
    ("change.data.ttl.minutes", "10080", "lakewright.retain"),
    ("snapshot.change.keep.minutes", "10080", "lakewright.retain"),
    ("snapshot.keep.min-count", "1", "lakewright.retain"),
    ("clean-orphan-file.enabled", "true", "lakewright.orphans-every"),
    ("clean-orphan-file.min-existing-time-minutes", "2880", "lakewright.min-retain"),
    ("clean-dangling-delete-files.enabled", "true", "lakewright.vacuum=on"),
    *((f"data-expire.{name}", "x", "use lakewright.delete-rows-after") for name in (
        "enabled", "level", "field", "datetime-string-pattern", "datetime-number-format", "retention-time",
        "base-on-rule",
    )),
    *((f"table-trash.{name}", "x", "lakewright.retain") for name in (
        "enabled", "custom-root-location", "file-pattern",
    )),
    *((f"tag.auto-create.{name}", "x", "makes no tags") for name in (
        "enabled", "trigger.period", "trigger.offset.minutes", "trigger.max-delay.minutes", "max-age-ms", "tag-format",
    )),
    ("use.optimization.autoOptimize.revisionId", "1", "with a Qbeast index"),
    ("use.optimization.revision-id", "1", "with a Qbeast index"),
    ("use.optimization.revision-rewrite", "true", "with a Qbeast index"),
    ("use.optimization.autoOptimize.optimizeUnindexedFiles.enabled", "true", "with a Qbeast index"),
    ("use.optimization.autoOptimize.optimizeUnindexedFiles.prioritize", "true", "with a Qbeast index"),
    ("use.optimization.autoOptimize.optimizeUnindexedFiles.batchBytes", "1", "lakewright.max-bytes-per-job"),
    ("use.optimization.autoOptimize.optimizeUnindexedFiles.fromTimestamp", "1", "lakewright.filter"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "field", "expected"), OBEYED, ids=[name for name, *_ in OBEYED])
def test_a_word_that_has_an_equivalent_is_obeyed_and_ends_with_unset(
    name: str, value: str, field: str, expected: object
) -> None:
    layer = read_properties({name: value})
    assert (dict(layer.values), dict(layer.property_names), layer.issues) == ({field: expected}, {field: name}, ())
    assert read_properties({}).values == {}
    assert hasattr(Policy(), field)


@pytest.mark.parametrize(("name", "value", "advice"), ADVISED, ids=[name for name, *_ in ADVISED])
def test_a_word_without_an_equivalent_is_shown_with_what_to_do_and_spoils_nothing_else(
    name: str, value: str, advice: str
) -> None:
    layer = read_properties({name: value, "lakewright.fan-in": "4"})
    assert dict(layer.values) == {"fan_in": 4}
    (issue,) = layer.issues
    assert (issue.property, issue.value, issue.is_blocking) == (name, value, False)
    assert advice in issue.reason


def test_every_refused_word_and_every_word_of_these_systems_is_tried_here() -> None:
    tried = {name for name, *_ in OBEYED} | {name for name, *_ in ADVISED}
    assert set(REFUSED) - tried == {"lakewright.retain-hours"}
    assert {name for name in NAMES if name.startswith(FOREIGN)} <= tried


@pytest.mark.parametrize("prefix", FOREIGN)
def test_an_unknown_word_of_another_system_is_shown_as_ignored(prefix: str) -> None:
    layer = read_properties({f"{prefix}banana": "1"})
    ((issue),) = layer.issues
    assert (layer.values, issue.is_blocking, issue.reason) == ({}, False, "is ignored: unknown property")


def test_words_of_engines_are_none_of_ours() -> None:
    others = ("read.split.target-size", "write.upsert.enabled", "log-store.enabled", "table.event-time-field", "owner")
    assert read_properties(dict.fromkeys(others, "1")) == read_properties({})


def test_the_word_for_one_run_is_no_issue_and_sets_nothing() -> None:
    layer = read_properties({MANUAL: "compaction"})
    assert (layer.values, layer.issues) == ({}, ())


def test_a_value_that_cannot_be_used_blocks_the_change_and_is_named() -> None:
    for name, *_ in OBEYED:
        if name == "self-optimizing.group":
            continue
        (issue,) = read_properties({name: ""}).issues
        assert (issue.property, issue.is_blocking) == (name, True)


def test_unset_of_qbeasts_switch_stops_a_table_that_it_had_started_and_no_other() -> None:
    on, off = {QBEAST_SWITCH: "true"}, {QBEAST_SWITCH: "false"}
    assert is_stopped_by_qbeast(on, {}, was_stopped=False)
    assert not is_stopped_by_qbeast(off, {}, was_stopped=False)
    assert not is_stopped_by_qbeast({"self-optimizing.enabled": "true"}, {}, was_stopped=False)
    assert is_stopped_by_qbeast({}, {}, was_stopped=True)
    for switch in ("lakewright.enabled", QBEAST_SWITCH, "self-optimizing.enabled"):
        assert not is_stopped_by_qbeast(on, {switch: "true"}, was_stopped=True)
