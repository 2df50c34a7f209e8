"""Policies from table properties: every property and alias is read, every bad value is named."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from shared.errors import InvalidInput
from shared.policy.names import MANUAL, PREFIX, QBEAST_SWITCH
from shared.policy.parsers import parse_duration, parse_ms, parse_size
from shared.policy.policy import (
    GIB,
    KIB,
    MIB,
    QUEUEING,
    BudgetWork,
    ClusteringOrder,
    ClusterMode,
    JobOrder,
    Policy,
    PolicyLayer,
    Priority,
    WindowWork,
    apply,
)
from shared.policy.properties import is_stopped_by_qbeast, read_properties, read_settings
from shared.policy.property import Property
from shared.policy.property_table import PROPERTIES
from shared.policy.refused_properties import REFUSED
from shared.policy.traits import LearnedValues, TableTraits
from tests.support.property_samples import GOOD

BAD = [
    ("lakewright.enabled", "yes"),
    ("lakewright.target-file-size", "big"),
    ("lakewright.target-file-size", "1kb"),
    ("lakewright.target-file-size", "-5"),
    ("delta.targetFileSize", "128 parsec"),
    ("lakewright.fan-in", "1"),
    ("lakewright.fan-in", "8.5"),
    ("lakewright.full-file-threshold", "75%"),
    ("lakewright.full-file-threshold", "1.5"),
    ("lakewright.tolerance", "nan"),
    ("lakewright.min-input-files", "0"),
    ("lakewright.max-small-files", ""),
    ("lakewright.idle-compaction-after", "6"),
    ("lakewright.idle-compaction-after", "0 h"),
    ("lakewright.full-rewrite-interval", "soon"),
    ("lakewright.full-every-commits", "1"),
    ("lakewright.full-every-delete-files", "0"),
    ("lakewright.primary-key", "a desc"),
    ("lakewright.delete-marker", "a, b"),
    ("self-optimizing.full.trigger.interval", "1h"),
    ("self-optimizing.minor.trigger.interval", "1h"),
    ("lakewright.target-filesize", "1mb"),
    ("lakewright.delete-ratio-threshold", "0"),
    ("lakewright.time-window", "7"),
    ("lakewright.clustering-order", "event_time"),
    ("lakewright.sort-by", "a b"),
    ("lakewright.zorder-by", "a desc"),
    ("lakewright.max-depth", "1"),
    ("lakewright.max-mode", "full"),
    ("lakewright.filter", "dt like 'x%'"),
    ("lakewright.max-bytes-per-job", "1b"),
    ("lakewright.priority", "urgent"),
    ("lakewright.weight", "0"),
    ("lakewright.max-concurrent-jobs", "0"),
    ("lakewright.quota", "1.5"),
    ("lakewright.quota", "0.001"),
    ("self-optimizing.quota", "half"),
    ("lakewright.queue", "two words"),
    ("lakewright.dml-policy", "sometimes"),
    ("lakewright.max-write-contention", "1.1"),
    ("lakewright.retain-hours", "24"),
    ("table-expire.enabled", "true"),
    ("acid.data.retain.hours", "24h"),
    ("lakewright.vacuum", "yes"),
    ("lakewright.retain", "7"),
    ("lakewright.index-zone", "UTC+1 hour"),
    ("lakewright.min-retain", "interval 1 month"),
    ("delta.deletedFileRetentionDuration", "7"),
    ("lakewright.vacuum-every", "off"),
    ("lakewright.orphans-every", "never"),
    ("lakewright.checkpoint-every", "1"),
    ("snapshot.base.keep.minutes", "-1"),
    ("snapshot.keep.duration", "720"),
    *((name, "1") for name in REFUSED),
    ("use.optimization.autoOptimize.optimizeUnindexedFiles.enabled", "true"),
    ("use.optimization.autoOptimize.optimizeUnindexedFiles.prioritize", "true"),
    ("use.optimization.autoOptimize.optimizeUnindexedFiles.batchBytes", "10000000000"),
    ("use.optimization.autoOptimize.optimizeUnindexedFiles.fromTimestamp", "0"),
    ("use.optimization.revision-id", "1"),
    ("use.optimization.revision-rewrite", "true"),
    ("use.optimization.whatever-comes", "1"),
    ("self-optimizing.execute.num-retries", "5"),
]


@pytest.mark.parametrize(("name", "value", "field", "expected"), GOOD)
def test_a_property_sets_its_field(name: str, value: str, field: str, expected: object) -> None:
    layer = read_properties({name: value})
    assert layer.issues == ()
    assert layer.property_names[field] == name
    assert set(layer.property_names.values()) == {name}
    assert getattr(apply(Policy(), layer), field) == expected


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_property_is_named_with_its_value_and_what_is_expected(name: str, value: str) -> None:
    (issue,) = read_properties({name: value}).issues
    assert (issue.property, issue.value) == (name, value)
    assert len(issue.reason) > 10


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_the_default_as_people_write_it_is_the_default(prop: Property) -> None:
    assert prop.parse(prop.default) == getattr(Policy(), prop.policy_field)


def test_every_name_of_every_property_is_tried() -> None:
    """A row or an alias that is added later cannot be left out here."""
    names = {PREFIX + prop.name for prop in PROPERTIES} | {name for prop in PROPERTIES for name in prop.aliases}
    assert names == {name for name, *_ in GOOD}
    assert REFUSED.keys() <= {name for name, _ in BAD}


def test_a_property_that_means_nothing_to_us_is_shown_and_holds_nothing_back() -> None:
    layer = read_properties({"lakewright.retain-hours": "24", "lakewright.fan-in": "4"})
    assert layer.values == {"fan_in": 4}
    assert [issue.is_blocking for issue in layer.issues] == [False]
    assert "lakewright.retain" in layer.issues[0].reason


@pytest.mark.parametrize(("value", "order"), [("TIME", ClusteringOrder.TIME), (" None ", ClusteringOrder.NONE)])
def test_the_order_of_files_is_read(value: str, order: ClusteringOrder) -> None:
    assert read_properties({"lakewright.clustering-order": value}).values == {"clustering_order": order}


def test_the_property_that_starts_a_run_is_no_issue() -> None:
    assert read_properties({MANUAL: "compaction"}) == PolicyLayer()


SWITCHED_ON = {QBEAST_SWITCH: "true"}


@pytest.mark.parametrize(
    ("before", "after", "was_stopped", "expected"),
    [
        (SWITCHED_ON, {}, False, True),
        (SWITCHED_ON, {"comment": "x"}, False, True),
        ({QBEAST_SWITCH: "TRUE"}, {}, False, True),
        ({QBEAST_SWITCH: "false"}, {}, False, False),
        ({QBEAST_SWITCH: "perhaps"}, {}, False, False),
        ({}, {}, False, False),
        ({}, {"comment": "x"}, True, True),
        ({}, SWITCHED_ON, True, False),
        ({}, {"lakewright.enabled": "true"}, True, False),
        ({}, {"self-optimizing.enabled": "false"}, True, False),
        ({"self-optimizing.enabled": "true"}, {}, False, False),
        ({**SWITCHED_ON, "lakewright.enabled": "true"}, {}, False, False),
        ({**SWITCHED_ON, "lakewright.enabled": "true"}, {"lakewright.enabled": "true"}, False, False),
    ],
)
def test_a_table_is_stopped_where_qbeasts_switch_that_had_switched_it_on_is_unset(
    before: dict[str, str], after: dict[str, str], was_stopped: bool, expected: bool
) -> None:
    assert is_stopped_by_qbeast(before, after, was_stopped=was_stopped) is expected


def test_quota_and_concurrent_jobs_are_one_limit_and_exclude_each_other() -> None:
    layer = read_properties({"lakewright.quota": "2", "lakewright.max-concurrent-jobs": "1"})
    with pytest.raises(InvalidInput, match="set one of them"):
        apply(Policy(), layer)


def test_an_own_property_wins_over_its_aliases() -> None:
    layer = read_properties({"delta.targetFileSize": "64mb", "lakewright.target-file-size": "32mb"})
    assert layer.values == {"target_bytes": 32 * MIB}


@pytest.mark.parametrize(
    ("own", "minor", "major", "interval_s"),
    [
        pytest.param(None, "3600000", "86400000", 3_600, id="the first alias"),
        pytest.param(None, "-1", "86400000", 86_400, id="the first alias is off"),
        pytest.param(None, "-1", "-1", None, id="both are off"),
        pytest.param("off", "3600000", "86400000", None, id="the own property is off"),
    ],
)
def test_one_interval_of_amoro_that_is_off_leaves_the_other_in_force(
    own: str | None, minor: str, major: str, interval_s: int | None
) -> None:
    names = ("self-optimizing.minor.trigger.interval", "self-optimizing.major.trigger.interval")
    set_here = {} if own is None else {"lakewright.compact-interval": own}
    assert read_properties(dict(zip(names, (minor, major), strict=True)) | set_here).values == {
        "compact_interval_s": interval_s
    }


def test_foreign_properties_are_no_ones_business() -> None:
    assert read_properties({"delta.enableChangeDataFeed": "true", "comment": "x"}) == PolicyLayer()


def test_values_that_contradict_each_other_are_refused() -> None:
    layer = read_properties({"lakewright.fan-in": "2", "lakewright.full-file-threshold": "0.4"})
    assert layer.issues == ()
    with pytest.raises(InvalidInput, match="full-file-threshold"):
        apply(Policy(), layer)


def test_a_policy_survives_its_encoding() -> None:
    policy = Policy(
        quota=Fraction(1, 4),
        tolerance=Fraction(1, 7),
        idle_compaction_after_s=None,
        delete_ratio_threshold=None,
        learned=LearnedValues(Fraction(1, 2), Fraction(1, 3)),
        traits=TableTraits(job_kinds="compact vacuum", orders_rows=False),
    )
    assert Policy.decode('{"tolerance":"1/7"}') == Policy(tolerance=Fraction(1, 7))
    assert Policy.decode(policy.encode()) == policy
    assert policy.version != Policy().version


def test_each_property_has_a_field_and_a_meaning() -> None:
    assert all(hasattr(Policy(), prop.policy_field) and prop.description for prop in PROPERTIES)


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("2 kib", 2 * KIB), ("1.5MB", 3 * MIB // 2), ("1g", GIB)])
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("1 h", 3600), ("90s", 90), ("2 minutes", 120), ("1 day", 86_400)])
def test_durations_carry_their_unit(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


DURATIONS = [
    ("30s", 30),
    ("15min", 900),
    ("6 h", 21_600),
    ("36h", 129_600),
    ("1.5 h", 5_400),
    ("7 days", 604_800),
    ("interval 2 days", 172_800),
    ("interval 36 hours", 129_600),
    ("INTERVAL 1 week 2 days", 777_600),
    ("1h30min", 5_400),
    ("1500 milliseconds", 1),
]


@pytest.mark.parametrize("prop", [prop for prop in PROPERTIES if prop.unit == "seconds"], ids=lambda prop: prop.name)
@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_each_property_of_time_takes_short_durations_and_intervals(prop: Property, text: str, seconds: int) -> None:
    found = prop.parse(text)
    # The least retention is rounded up, so that no file is deleted a moment early.
    assert found == (2 if prop.name == "min-retain" and seconds == 1 else seconds)


@pytest.mark.parametrize("prop", [prop for prop in PROPERTIES if prop.unit == "seconds"], ids=lambda prop: prop.name)
@pytest.mark.parametrize("text", ["", "6", "h", "interval", "1 month", "7 days 2", "-1 day", "1 day, 2 hours"])
def test_no_property_of_time_guesses_a_duration(prop: Property, text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        prop.parse(text)


def test_a_duration_in_milliseconds_is_not_read_in_minutes() -> None:
    assert parse_duration("2000ms") == 2
    with pytest.raises(ValueError, match="at least one second"):
        parse_duration("250ms")


@pytest.mark.parametrize("text", ["36h", "7d", "1.5 days", "interval 1 month", "7"])
def test_deltas_own_retention_takes_only_what_delta_takes(text: str) -> None:
    """Delta refuses such values, so a table that has one has no retention that can be known."""
    (issue,) = read_properties({"delta.deletedFileRetentionDuration": text}).issues
    assert "expected an interval" in issue.reason


def test_a_field_that_another_release_has_more_changes_no_version_while_no_one_sets_it() -> None:
    """Deciders of two releases share the tables: by differing versions they would rebuild each other's for ever."""

    @dataclass(frozen=True, slots=True)
    class Later(Policy):
        patience_s: int | None = 7

    stated: dict[str, Any] = {"fan_in": 4, "quota": Fraction(1, 4), "idle_compaction_after_s": None}
    assert Later().version == Policy().version
    assert Later(**stated).version == Policy(**stated).version
    assert Later(patience_s=8).version != Policy().version
    versions = [
        Policy(),
        Policy(enabled=False),
        Policy(idle_compaction_after_s=None),
        Policy(delete_ratio_threshold=None),
    ]
    assert len({policy.version for policy in versions}) == len(versions)


def test_the_version_of_defaults_holds_over_releases() -> None:
    """It stands with every table's cursor: another one has them all rebuilt."""
    assert Policy().version == "eee8a9da"


def test_a_release_whose_levels_are_other_ones_by_default_has_another_version() -> None:
    """Partitions that were counted under other bounds must not be mixed with these, though no one set a value."""

    @dataclass(frozen=True)
    class Later(Policy):
        target_bytes: int = 256 * MIB

    assert Later().version != Policy().version


@pytest.mark.parametrize("name", ["shrink", "full_shrink"])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(-1), Fraction(33, 32)])
def test_a_shrink_factor_that_is_no_share_is_refused(name: str, share: Fraction) -> None:
    with pytest.raises(InvalidInput, match="is no share") as refused:
        LearnedValues(**{name: share})
    assert refused.value.field == name


@pytest.mark.parametrize("name", ["fan-in", "lakewright.fan-in", "self-optimizing.fragment-ratio"])
def test_a_setting_is_taken_by_its_short_its_full_and_a_foreign_name(name: str) -> None:
    assert read_settings({name: "4"}).values == {"fan_in": 4}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("fan-in", "many", "expected a whole number"),
        ("fan-inn", "4", "did you mean lakewright.fan-in"),
        ("write.summary", "4", "docs/properties.md lists all"),
    ],
)
def test_a_setting_that_nothing_reads_or_can_use_is_refused_by_its_full_name(name: str, value: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        read_settings({"tolerance": "0.2", name: value})
    assert refused.value.field == (name if "." in name else f"lakewright.{name}")


@pytest.mark.parametrize(("text", "ms"), [("250ms", 250), ("1.5 min", 90_000), ("0s", 0), ("2 hours", 7_200_000)])
def test_a_time_of_the_queue_is_read_in_milliseconds(text: str, ms: int) -> None:
    assert parse_ms(text) == ms


@pytest.mark.parametrize("text", ["60", "ms", "1 week", "0.0001s", "", "-1s"])
def test_a_time_without_a_unit_or_finer_than_a_millisecond_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time with its unit"):
        parse_ms(text)


@pytest.mark.parametrize(("clustered", "indexed"), [(False, False), (True, False), (False, True)])
def test_tables_whose_format_orders_their_files_are_left_alone_by_exact_rewrites(
    clustered: bool, indexed: bool
) -> None:
    assert Policy().with_traits(is_clustered=clustered, is_indexed=indexed).has_own_layout is (clustered or indexed)


def test_a_target_that_is_left_to_be_chosen_is_the_one_below_until_then_and_one_that_is_set_wins() -> None:
    auto = read_properties({"lakewright.target-file-size": " Auto ", "delta.targetFileSize": "9mb"})
    fixed = read_properties({"lakewright.target-file-size": "64mb"})
    service = apply(Policy(target_bytes=32 * MIB), auto)
    assert (service.target_bytes, service.fits_target) == (32 * MIB, True)
    for layers, target in (((auto, fixed), 64 * MIB), ((fixed,), 64 * MIB)):
        found = apply(service, *layers)
        assert (found.target_bytes, found.fits_target) == (target, False)
    assert apply(service, PolicyLayer({"fan_in": 4})).fits_target
    issue = read_properties({"delta.targetFileSize": "auto"}).issues[0]
    assert issue.property == "delta.targetFileSize"


def test_values_that_bear_on_the_queue_alone_are_no_part_of_the_version_of_a_state() -> None:
    plain = Policy()
    orders: dict[str, object] = {
        "priority": Priority.LOW,
        "job_order": JobOrder.BALANCED,
        "read_weight": Fraction(1, 2),
    }
    orders |= {"max_job_wait_s": 60}
    limits = {"weight": Fraction(2), "max_concurrent_jobs": 1, "quota": Fraction(1, 2), "queue": "other"}
    limits |= {"work_window": "0:00-6:00 UTC", "window_work": WindowWork.HEAVY}
    limits |= {"budget": "1 GiB/day", "budget_work": BudgetWork.UNCROWDED, "max_write_amplification": Fraction(2)}
    assert {*orders, *limits} == QUEUEING
    for name, value in {**orders, **limits}.items():
        changed = replace(plain, **{name: value})
        assert changed.version != plain.version
        assert changed.state_version == plain.state_version
    assert replace(plain, fan_in=4).state_version != plain.state_version


def test_how_a_table_is_clustered_is_read_as_earlier_releases_wrote_it() -> None:
    assert Policy.decode('{"cluster":true}').cluster is ClusterMode.ON
    assert Policy.decode('{"cluster":false}').cluster is ClusterMode.OFF
    with pytest.raises(ValueError, match="1"):
        Policy.decode('{"cluster":1}')
    assert read_properties({"lakewright.cluster": "TRUE"}).values == {"cluster": ClusterMode.ON}
