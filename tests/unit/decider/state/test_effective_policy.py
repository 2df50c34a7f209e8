"""The policy in force: what is said closer to the table wins, and the last good stays while the new is unusable."""

from dataclasses import replace

import pytest

from decider.decide.actions import ACTIONS
from decider.state.effective_policy import (
    EffectivePolicy,
    LogStatus,
    PolicyDefaults,
    PolicyOrigin,
    PolicySource,
    resolve_unregistered,
)
from shared.errors import InvalidInput
from shared.jobs.payload import CLUSTER, COMPACT, EXPIRE, INDEX, VACUUM
from shared.policy.names import QBEAST_SWITCH
from shared.policy.policy import MIB, Policy, PolicyLayer, apply
from shared.refusals import Refusal, RefusalCode
from shared.table import TableId, TableRef

DEFAULT = Policy(target_bytes=64 * MIB)
TABLE = TableRef(TableId("t"), "t", "file:///t", "sales")


def test_properties_win_over_the_default_and_say_where_they_came_from() -> None:
    found = resolve_unregistered(DEFAULT, {"lakewright.fan-in": "4"}, {})
    assert (found.policy.fan_in, found.policy.target_bytes) == (4, 64 * MIB)
    assert found.origins["fan_in"] == PolicyOrigin(PolicySource.TABLE, "lakewright.fan-in")
    assert found.origins["target_bytes"] == PolicyOrigin(PolicySource.SERVICE)
    assert found.origins["tolerance"] == PolicyOrigin(PolicySource.DEFAULT)
    assert found.issues == ()


def test_request_wins_over_table_over_tenant_over_service() -> None:
    stated = {
        "lakewright.fan-in": "3",
        "lakewright.min-input-files": "3",
        "lakewright.max-small-files": "3",
        "lakewright.target-file-size": "3mb",
    }
    names = list(stated)
    defaults = PolicyDefaults(
        Policy(fan_in=6, min_input_files=6, max_small_files=6, target_bytes=6 * MIB),
        {"sales": dict.fromkeys(names[:3], "5"), "others": {"lakewright.target-file-size": "9mb"}},
    )
    table = TableRef(TableId("t"), "t", "file:///t", "sales", {names[0]: "3"})
    found = defaults.resolve(table, dict.fromkeys(names[:2], "4"), {}, LogStatus())
    policy = found.policy
    assert (policy.fan_in, policy.min_input_files, policy.max_small_files) == (3, 4, 5)
    assert policy.target_bytes == 6 * MIB
    fields = ("fan_in", "min_input_files", "max_small_files", "target_bytes", "tolerance")
    sources = [found.origins[field].source for field in fields]
    assert sources == [
        PolicySource.REQUEST,
        PolicySource.TABLE,
        PolicySource.TENANT,
        PolicySource.SERVICE,
        PolicySource.DEFAULT,
    ]


def test_a_bad_value_keeps_the_last_good_configuration_as_a_whole_and_shows_why() -> None:
    good = {"lakewright.fan-in": "4"}
    found = resolve_unregistered(DEFAULT, {"lakewright.fan-in": "16", "lakewright.tolerance": "lots"}, good)
    assert found.policy.fan_in == 4
    assert [issue.property for issue in found.issues] == ["lakewright.tolerance"]
    assert found.last_good == good


def test_a_refused_property_is_shown_and_the_others_are_taken() -> None:
    found = resolve_unregistered(DEFAULT, {"lakewright.retain-hours": "24", "lakewright.fan-in": "4"}, {})
    assert found.policy.fan_in == 4
    assert [issue.property for issue in found.issues] == ["lakewright.retain-hours"]


def test_without_a_last_good_configuration_the_default_is_in_force() -> None:
    found = resolve_unregistered(DEFAULT, {"lakewright.no-such": "1"}, {})
    assert found.policy == DEFAULT
    assert found.issues


def test_an_unset_property_falls_back_to_the_default() -> None:
    assert resolve_unregistered(DEFAULT, {}, {"lakewright.fan-in": "4"}).policy == DEFAULT


def test_values_of_two_sources_that_contradict_each_other_are_reported() -> None:
    defaults = PolicyDefaults(DEFAULT, {"sales": {"lakewright.full-file-threshold": "0.4"}})
    found = defaults.resolve(TABLE, {"lakewright.fan-in": "2"}, {}, LogStatus())
    assert (found.policy.fan_in, float(found.policy.full_file_threshold)) == (8, 0.4)
    assert "full-file-threshold" in found.issues[0].reason


def test_a_registration_that_came_to_contradict_the_defaults_does_not_stop_the_table() -> None:
    table = TableRef(TableId("t"), "t", "file:///t", "sales", {"lakewright.fan-in": "2"})
    found = PolicyDefaults(DEFAULT, {"sales": {"lakewright.full-file-threshold": "0.4"}}).resolve(
        table, {}, {}, LogStatus()
    )
    assert (found.policy.fan_in, float(found.policy.full_file_threshold)) == (8, 0.4)
    assert found.issues


@pytest.mark.parametrize(
    ("stated", "queue"),
    [({}, "default"), ({"lakewright.queue": "nightly"}, "nightly"), ({"self-optimizing.group": "hot"}, "hot")],
)
def test_a_table_belongs_to_exactly_one_queue_and_the_others_say_why_they_leave_it_alone(
    stated: dict[str, str], queue: str
) -> None:
    for served in ("default", "nightly", "hot"):
        found = PolicyDefaults(DEFAULT, queue=served).resolve(TABLE, stated, {}, LogStatus())
        assert found.policy.enabled is (served == queue)
        assert [f"queue {queue!r}" in note and f"queue={served}" in note for note in found.notes] == (
            [] if served == queue else [True]
        )


def test_deciders_of_a_queue_can_take_all_tables_that_name_none() -> None:
    found = PolicyDefaults(replace(DEFAULT, queue="nightly"), queue="nightly").resolve(TABLE, {}, {}, LogStatus())
    assert (found.policy.enabled, found.notes) == (True, ())


def test_of_its_groups_a_decider_serves_the_tables_and_leaves_those_of_other_queues_alone() -> None:
    defaults = PolicyDefaults(DEFAULT, queue="prod", groups={"etl": {}, "prod": {}})
    found = {
        queue: defaults.resolve(TABLE, {"lakewright.queue": queue}, {}, LogStatus())
        for queue in ("prod", "etl", "nightly")
    }
    assert {queue: one.policy.enabled for queue, one in found.items()} == {"prod": True, "etl": True, "nightly": False}
    assert {queue: defaults.group(one.policy) for queue, one in found.items()} == {
        "prod": "",
        "etl": "etl",
        "nightly": "",
    }
    assert "set lakewright.queue=etl or prod" in found["nightly"].notes[0]


def test_defaults_of_a_group_are_below_those_of_the_tenant_and_above_those_of_the_service() -> None:
    tenants = {TABLE.tenant: {"lakewright.fan-in": "4"}}
    groups = {"etl": {"lakewright.fan-in": "6", "lakewright.job-order": "balanced"}}
    defaults = PolicyDefaults(DEFAULT, tenants, groups=groups)
    found = defaults.resolve(TABLE, {"lakewright.queue": "etl"}, {}, LogStatus())
    assert (found.policy.fan_in, found.policy.job_order) == (4, "balanced")
    assert found.origins["job_order"] == PolicyOrigin(PolicySource.GROUP, "lakewright.job-order")
    assert defaults.resolve(TABLE, {}, {}, LogStatus()).policy.job_order == "benefit"
    last = defaults.resolve(
        TABLE, {"lakewright.queue": "etl", "lakewright.fan-in": "x"}, {"lakewright.queue": "etl"}, LogStatus()
    )
    assert (last.policy.queue, last.policy.job_order) == ("etl", "balanced")


def test_unusable_defaults_of_a_group_are_refused_at_the_start() -> None:
    with pytest.raises(InvalidInput, match="group 'etl'"):
        PolicyDefaults(DEFAULT, groups={"etl": {"lakewright.fan-in": "many"}})


@pytest.mark.parametrize("stated", [{"lakewright.fan-in": "many"}, {"lakewright.no-such": "1"}, {"fan-in": "1"}])
def test_unusable_defaults_of_a_tenant_are_refused_at_the_start(stated: dict[str, str]) -> None:
    if "fan-in" in stated:
        stated = {"lakewright.fan-in": stated["fan-in"]}
    with pytest.raises(InvalidInput, match="sales"):
        PolicyDefaults(DEFAULT, {"sales": stated})


def test_defaults_survive_their_encoding_and_what_cannot_be_read_is_refused() -> None:
    defaults = PolicyDefaults(DEFAULT, {"sales": {"lakewright.fan-in": "4"}}, "q")
    assert PolicyDefaults(queue="q").decode(defaults.encode()) == defaults
    assert defaults.version != PolicyDefaults(DEFAULT).version
    with_groups = replace(defaults, groups={"etl": {"lakewright.fan-in": "6"}})
    assert PolicyDefaults(queue="q").decode(with_groups.encode()) == with_groups
    assert with_groups.version != defaults.version
    with pytest.raises(InvalidInput, match="another decider"):
        defaults.decode("{}")


@pytest.mark.parametrize(
    ("stated", "registered"),
    [
        ({"lakewright.enabled": "false", "lakewright.fan-in": "abc"}, {}),
        ({"self-optimizing.enabled": "false", "lakewright.no-such": "1"}, {}),
        ({"lakewright.enabled": "false", "lakewright.quota": "0.1"}, {"lakewright.max-concurrent-jobs": "2"}),
        ({}, {"lakewright.enabled": "false", "lakewright.fan-in": "2"}),
    ],
)
def test_a_table_that_was_switched_off_stays_off_where_nothing_else_it_says_can_be_used(
    stated: dict[str, str], registered: dict[str, str]
) -> None:
    """The safe side: a table that no one has seen with better properties is not rewritten against its owner's word."""
    table = TableRef(TableId("t"), "t", "file:///t", "sales", registered)
    found = PolicyDefaults(DEFAULT, {"sales": {"lakewright.full-file-threshold": "0.4"}}).resolve(
        table, stated, {}, LogStatus()
    )
    switch = next(name for name in (*stated, *registered) if name.endswith("enabled"))
    assert found.policy.enabled is False
    assert found.origins["enabled"].name == switch
    assert found.issues
    assert [switch in note for note in found.notes] == [True]


def test_the_registration_wins_over_a_switch_beside_what_cannot_be_used() -> None:
    table = TableRef(TableId("t"), "t", "file:///t", "sales", {"lakewright.enabled": "true"})
    found = PolicyDefaults(DEFAULT).resolve(
        table, {"lakewright.enabled": "false", "lakewright.fan-in": "abc"}, {}, LogStatus()
    )
    assert (found.policy.enabled, found.notes) == (True, ())


def test_a_last_good_configuration_that_cannot_be_used_any_more_gives_way_to_the_defaults() -> None:
    """The registration has changed since, and contradicts it."""
    table = TableRef(TableId("t"), "t", "file:///t", "sales", {"lakewright.max-concurrent-jobs": "2"})
    found = PolicyDefaults(DEFAULT).resolve(
        table, {"lakewright.fan-in": "many"}, {"lakewright.quota": "0.1"}, LogStatus()
    )
    assert (found.policy.quota, found.policy.max_concurrent_jobs, found.last_good) == (None, 2, {})
    assert [issue.property for issue in found.issues] == ["lakewright.fan-in"]


REFUSAL = Refusal(RefusalCode.FEATURE, "clustering", "merging would undo it", "Run OPTIMIZE")


def test_nothing_enables_a_refused_table_and_it_says_why() -> None:
    table = TableRef(TableId("t"), "t", "file:///t", "sales", {"lakewright.enabled": "true"})
    found = PolicyDefaults(DEFAULT).resolve(table, {}, {}, LogStatus(refusal=REFUSAL))
    assert (found.policy.enabled, found.policy.traits.refused) == (False, "unsafe_feature:clustering")
    assert found.origins["enabled"] == PolicyOrigin(PolicySource.TABLE, "clustering")
    assert (found.refusal, found.notes) == (REFUSAL, ("the table is refused: merging would undo it. Run OPTIMIZE.",))


def test_a_clustered_table_gets_the_jobs_that_its_refusal_allows_once_its_owner_switches_clustering_on() -> None:
    status = LogStatus(refusal=replace(REFUSAL, allows=(CLUSTER, VACUUM)), format="delta")
    off = PolicyDefaults(DEFAULT).resolve(TABLE, {}, {}, status)
    assert (off.policy.enabled, off.policy.traits.refused, off.policy.clusters) == (
        False,
        "unsafe_feature:clustering",
        False,
    )
    stated = {"lakewright.cluster": "on", "lakewright.sort-by": "a", "lakewright.primary-key": "a"}
    found = PolicyDefaults(DEFAULT).resolve(TABLE, stated | {"lakewright.sequence-by": "b"}, {}, status)
    assert (found.policy.enabled, found.policy.traits.refused, found.policy.clusters, found.refusal) == (
        True,
        "",
        True,
        None,
    )
    assert [kind for kind in ACTIONS.kinds if found.policy.runs(kind)] == [VACUUM, CLUSTER]
    assert found.policy.sort_order is None
    assert [note.partition(",")[0].partition(":")[0] for note in found.notes] == [
        "merging would undo it",
        "sort-by has no effect",
        "primary-key has no effect on clustered Delta tables",
    ]
    in_cells = PolicyDefaults(DEFAULT).resolve(TABLE, {"lakewright.cluster": "cells"}, {}, status)
    assert (in_cells.policy.clusters, in_cells.policy.has_cells, found.policy.has_cells) == (True, True, False)
    assert "rewrites keep it in cells" in in_cells.notes[0]
    # Every other refusal stands, whatever is switched on.
    other = PolicyDefaults(DEFAULT).resolve(TABLE, stated, {}, LogStatus(refusal=REFUSAL, format="delta"))
    assert (other.policy.traits.refused, other.policy.clusters) == ("unsafe_feature:clustering", False)
    plain = PolicyDefaults(DEFAULT).resolve(TABLE, stated, {}, LogStatus(format="delta"))
    assert (plain.policy.traits.job_kinds, plain.policy.clusters) == ("", False)


CELLS = {"lakewright.cluster": "cells", "lakewright.cluster-by": "a, b"}


def test_an_iceberg_table_is_kept_in_cells_of_the_columns_that_its_owner_names_and_not_compacted() -> None:
    status = LogStatus(format="iceberg")
    found = PolicyDefaults(DEFAULT).resolve(TABLE, CELLS | {"lakewright.delete-rows-after": "9 days of d"}, {}, status)
    assert (found.policy.has_cells, found.policy.has_own_layout, found.policy.enabled) == (True, True, True)
    assert not found.policy.runs(COMPACT)
    assert all(found.policy.runs(kind) for kind in (CLUSTER, VACUUM, EXPIRE))
    assert found.notes == (
        "lakewright.cluster-by is set, so nothing else compacts or sorts it: rewrites keep it in cells",
    )
    refused = PolicyDefaults(DEFAULT).resolve(TABLE, CELLS, {}, replace(status, refusal=REFUSAL))
    assert (refused.policy.enabled, refused.policy.clusters) == (False, False)


@pytest.mark.parametrize(
    ("stated", "table_format", "note"),
    [
        ({"lakewright.cluster": "cells"}, "iceberg", "unless it is cells, and cluster-by names columns"),
        (CELLS | {"lakewright.cluster": "on"}, "iceberg", "unless it is cells, and cluster-by names columns"),
        ({"lakewright.cluster-by": "a"}, "delta", "cluster-by has no effect on Delta tables"),
        (CELLS, "delta", "cluster-by has no effect on Delta tables"),
    ],
)
def test_half_of_what_cells_need_changes_nothing_and_a_note_says_so(
    stated: dict[str, str], table_format: str, note: str
) -> None:
    found = PolicyDefaults(DEFAULT).resolve(TABLE, stated, {}, LogStatus(format=table_format))
    assert not found.policy.clusters
    assert found.policy.runs(COMPACT)
    assert [note in one for one in found.notes] == [True]
    unknown = PolicyDefaults(DEFAULT).resolve(TABLE, stated, {}, LogStatus())
    assert (unknown.policy.clusters, unknown.notes) == (False, ())
    only_named = PolicyDefaults(DEFAULT).resolve(TABLE, {"lakewright.cluster-by": "a"}, {}, LogStatus(format="iceberg"))
    assert (only_named.policy.clusters, only_named.notes) == (False, ())


def test_an_index_is_optimized_once_its_owner_switches_it_on() -> None:
    refusal = Refusal(RefusalCode.QBEAST, "qbeast.lastRevisionID", "it has an index", "Do", (INDEX, VACUUM))
    status = LogStatus(refusal=refusal, format="delta")

    def resolved(**stated: str) -> EffectivePolicy:
        return PolicyDefaults(DEFAULT).resolve(
            TABLE, {name.replace("_", "."): text for name, text in stated.items()}, {}, status
        )

    off = resolved()
    assert (off.policy.enabled, off.policy.traits.refused, off.policy.traits.is_indexed) == (
        False,
        "qbeast:qbeast.lastRevisionID",
        False,
    )
    on = resolved(lakewright_index="on", use_optimization_revision="9")
    assert (on.policy.enabled, on.policy.indexes, on.refusal) == (True, True, None)
    assert [kind for kind in ACTIONS.kinds if on.policy.runs(kind)] == [VACUUM, INDEX]
    theirs = resolved(use_optimization_autoOptimize_enabled="true", use_optimization_autoOptimize_revisionId="1")
    assert (theirs.policy.indexes, theirs.issues) == (True, ())
    assert theirs.origins["index"] == PolicyOrigin(PolicySource.TABLE, QBEAST_SWITCH)
    stopped = resolved(use_optimization_autoOptimize_enabled="false", lakewright_index="on")
    assert (stopped.policy.enabled, stopped.policy.traits.refused) == (False, "")
    # A manual run needs no switch, and is the only one that runs.
    manual = resolved(use_optimization_type="LeveledCompaction")
    assert (manual.policy.traits.is_indexed, manual.policy.indexes, manual.policy.runs(INDEX)) == (True, False, True)


@pytest.mark.parametrize(
    ("registered", "stated", "is_enabled", "origin"),
    [
        ({}, {}, False, PolicyOrigin(PolicySource.TABLE, QBEAST_SWITCH)),
        ({"lakewright.enabled": "true"}, {}, True, PolicyOrigin(PolicySource.REQUEST, "lakewright.enabled")),
        ({}, {"lakewright.enabled": "false"}, False, PolicyOrigin(PolicySource.TABLE, "lakewright.enabled")),
    ],
)
def test_a_table_whose_qbeast_switch_was_unset_is_off_unless_its_registration_enables_it(
    registered: dict[str, str], stated: dict[str, str], is_enabled: bool, origin: PolicyOrigin
) -> None:
    table = TableRef(TableId("t"), "t", "file:///t", "sales", registered)
    found = PolicyDefaults(DEFAULT).resolve(table, stated, {}, LogStatus(is_stopped_by_qbeast=True))
    assert (found.policy.enabled, found.origins["enabled"]) == (is_enabled, origin)
    assert any(QBEAST_SWITCH in note for note in found.notes) == (not registered and not stated)


def test_levels_are_fitted_to_the_size_that_the_state_has_learned_unless_anyone_set_a_fan_in() -> None:
    learned = LogStatus(typical_file_bytes=3_000_000)
    found = PolicyDefaults(DEFAULT).resolve(TABLE, {}, {}, learned)
    assert found.policy.learned.typical_file_bytes == 3_000_000
    assert "the size levels are fitted to new files of 2.86 MiB" in found.notes[-1]
    for defaults, configuration in (
        (PolicyDefaults(DEFAULT), {"lakewright.fan-in": "8"}),
        (PolicyDefaults(DEFAULT, {TABLE.tenant: {"lakewright.fan-in": "8"}}), {}),
        (PolicyDefaults(apply(DEFAULT, PolicyLayer({"fan_in": 8}))), {}),
    ):
        fixed = defaults.resolve(TABLE, configuration, {}, learned)
        assert (fixed.policy.size_levels, fixed.notes) == (DEFAULT.size_levels, ())


def test_a_target_that_was_chosen_is_in_force_where_the_last_word_is_auto() -> None:
    chosen, name = LogStatus(target_bytes=256 * MIB), "lakewright.target-file-size"
    auto = PolicyDefaults(DEFAULT, {TABLE.tenant: {name: "auto"}})
    found = auto.resolve(TABLE, {}, {}, chosen)
    assert found.policy.target_bytes == found.policy.size_levels.target_bytes == 256 * MIB
    assert found.notes == ("the target of 256 MiB is chosen; set target-file-size to a size to fix it",)
    assert auto.resolve(TABLE, {}, {}, LogStatus()).policy.target_bytes == DEFAULT.target_bytes
    for defaults, configuration, target in (
        (auto, {name: "32mb"}, 32 * MIB),
        (PolicyDefaults(DEFAULT), {}, DEFAULT.target_bytes),
    ):
        fixed = defaults.resolve(TABLE, configuration, {}, chosen)
        assert (fixed.policy.target_bytes, fixed.notes) == (target, ())


REMOVAL = {
    "primary-key": "id",
    "sequence-by": "ts",
    "delete-marker": "gone",
    "key-scope": "partition",
}
EXPIRY = {"delete-rows-after": "90 days of ts"}


@pytest.mark.parametrize("name", [*REMOVAL, *EXPIRY])
def test_only_the_tables_own_properties_decide_which_rows_are_removed(name: str) -> None:
    """A registration is an operator's, and no operator can make an actor change data."""
    stated = {f"lakewright.{name}": {**REMOVAL, **EXPIRY}[name], "lakewright.fan-in": "3"}
    found = PolicyDefaults().resolve(replace(TABLE, properties=stated), {}, {}, LogStatus(format="delta"))
    field = name.replace("-", "_")
    assert getattr(found.policy, field) == getattr(Policy(), field)
    assert found.policy.fan_in == 3, "whatever else was registered stays in effect"
    (issue,) = found.issues
    assert (issue.property, issue.is_blocking) == (f"lakewright.{name}", False)
    assert "ALTER TABLE" in issue.reason
    for each in (REMOVAL, EXPIRY):
        own = {f"lakewright.{one}": text for one, text in each.items()}
        assert PolicyDefaults().resolve(TABLE, own, {}, LogStatus()).issues == ()
    with pytest.raises(InvalidInput, match="which rows are removed"):
        PolicyDefaults(tenants={"sales": {f"lakewright.{name}": {**REMOVAL, **EXPIRY}[name]}})


def test_rows_are_removed_by_key_or_by_age() -> None:
    """The newest row of a key may be over before an older one, which would be the newest again."""
    both = {f"lakewright.{one}": text for one, text in {**REMOVAL, **EXPIRY}.items()}
    (issue,) = PolicyDefaults().resolve(TABLE, both, {}, LogStatus()).issues
    assert "set either primary-key or delete-rows-after" in issue.reason


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_an_age_has_an_effect_on_each_format(format_: str) -> None:
    own = {f"lakewright.{one}": text for one, text in EXPIRY.items()}
    found = PolicyDefaults().resolve(TABLE, own, {}, LogStatus(format=format_))
    assert (found.policy.runs(EXPIRE), found.notes) == (True, ())


def test_a_filter_of_a_registration_does_not_widen_what_an_owners_age_deletes() -> None:
    own = {"lakewright.delete-rows-after": "90 days of ts", "lakewright.filter": "dt >= '2026-01-01'"}
    registered = replace(TABLE, properties={"lakewright.filter": "dt >= '2000-01-01'"})
    found = PolicyDefaults().resolve(registered, own, {}, LogStatus(format="delta"))
    assert (found.policy.filter, found.policy.delete_rows_after) == ("dt >= '2026-01-01'", "90 days of ts")


def test_only_the_owner_lets_rewrites_be_undone_for_writers() -> None:
    asked = {"lakewright.yield-to-writers": "on"}
    assert PolicyDefaults().resolve(TABLE, asked, {}, LogStatus(format="iceberg")).policy.yield_to_writers
    found = PolicyDefaults().resolve(replace(TABLE, properties=asked), {}, {}, LogStatus(format="iceberg"))
    assert not found.policy.yield_to_writers
    (issue,) = found.issues
    assert (issue.property, issue.is_blocking) == ("lakewright.yield-to-writers", False)
    assert "each rewrite that is undone is lost" in issue.reason
    both = asked | {"lakewright.primary-key": "id"}
    issues = PolicyDefaults().resolve(replace(TABLE, properties=both), {}, {}, LogStatus(format="iceberg")).issues
    assert ["which rows are removed" in one.reason for one in issues] == [True, False]


def test_a_registration_cannot_change_which_rows_an_owners_key_removes() -> None:
    own = {"lakewright.primary-key": "id", "lakewright.sequence-by": "ts"}
    others = {"lakewright.primary-key": "country", "lakewright.sequence-by": "id"}
    found = PolicyDefaults().resolve(replace(TABLE, properties=others), own, {}, LogStatus(format="delta"))
    assert (found.policy.primary_key, found.policy.sequence_by) == ("id", "ts")


@pytest.mark.parametrize("last_good", [False, True], ids=["now", "last good"])
def test_a_registration_cannot_change_from_which_partitions_an_owners_key_removes_rows(*, last_good: bool) -> None:
    """A wider filter would have rows removed where the owner's excludes it."""
    own = {"lakewright.primary-key": "id", "lakewright.sequence-by": "ts", "lakewright.filter": "dt >= '2026-01-01'"}
    registered = replace(TABLE, properties={"lakewright.filter": "dt >= '2000-01-01'", "lakewright.fan-in": "3"})
    stated = ({"lakewright.fan-in": "many"}, own) if last_good else (own, {})
    found = PolicyDefaults().resolve(registered, *stated, LogStatus(format="delta"))
    assert (found.policy.filter, found.policy.fan_in) == ("dt >= '2026-01-01'", 3)
    if not last_good:
        assert [(one.property, one.is_blocking) for one in found.issues] == [("lakewright.filter", False)]
    for without in ("lakewright.primary-key", "lakewright.filter"):
        free = {name: value for name, value in own.items() if name != without}
        found = PolicyDefaults().resolve(registered, free, {}, LogStatus(format="delta"))
        assert found.policy.filter == "dt >= '2000-01-01'", "it removes no row, or fewer"
