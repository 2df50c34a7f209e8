"""A requested run: its partitions are named by the columns that users know, and each of its terms has an effect."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from fractions import Fraction

import pytest

from decider.optimize.partition_selector import Selector, exact_partition, find_partition, label, select
from decider.optimize.run_terms import RunMode, RunTerms, run_terms
from shared.errors import InvalidInput
from shared.jobs.payload import RewriteKind
from shared.partitions import partition_key
from shared.policy.names import PREFIX
from shared.policy.policy import MIB, MaxMode, Policy, PortablePaths
from shared.policy.property_table import PROPERTIES
from shared.table import PartitionColumn, PartitionKey
from tests.support.property_samples import GOOD


@pytest.mark.parametrize(
    ("mode", "kind", "max_mode"),
    [
        ("levels", RewriteKind.LEVELS, MaxMode.MINOR),
        ("minor", RewriteKind.LEVELS, MaxMode.MINOR),
        ("major", RewriteKind.LEVELS, MaxMode.MAJOR),
        ("idle", RewriteKind.IDLE, MaxMode.MINOR),
        ("full", RewriteKind.FULL, MaxMode.MINOR),
    ],
)
def test_each_mode_has_its_extent_and_its_levels(mode: str, kind: RewriteKind, max_mode: MaxMode) -> None:
    terms = run_terms(mode, {}, force=False)
    assert terms.mode.rewrite_kind is kind
    assert terms.apply(Policy(max_mode=MaxMode.MINOR)).max_mode is max_mode
    assert terms.is_custom == (mode != "levels")


def test_an_unknown_mode_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="expected one of levels, minor, major, idle, full") as refused:
        run_terms("all", {}, force=False)
    assert (refused.value.field, refused.value.allowed) == ("mode", ", ".join(RunMode))


def test_values_replace_those_of_the_table_for_this_run() -> None:
    terms = run_terms("levels", {"target-file-size": "8MiB", "lakewright.fan-in": "4"}, force=False)
    policy = terms.apply(Policy(enabled=False))
    assert (policy.target_bytes, policy.fan_in, policy.fits_levels, policy.enabled) == (8 * MIB, 4, False, False)
    assert terms.is_custom


def test_force_overrides_tolerance_and_switch_and_a_full_rewrite_leaves_harmful_paths() -> None:
    forced = RunTerms(force=True).apply(Policy(enabled=False))
    assert (forced.enabled, forced.tolerance, forced.portable_paths) == (True, 0, PortablePaths.ALWAYS)
    full = RunTerms(RunMode.FULL).apply(Policy(enabled=False))
    assert (full.enabled, full.tolerance, full.portable_paths) == (False, Fraction(15, 100), PortablePaths.ALWAYS)
    assert RunTerms().apply(Policy()) == Policy()
    assert not RunTerms().is_custom


SAMPLES = {name: value for name, value, _, _ in GOOD}
ANY_MODE = {"target-file-size", "fan-in", "full-file-threshold", "max-bytes-per-job", "row-group-copy", "proofread"}
LEVELS_ONLY = {"tolerance", "min-input-files", "max-small-files", "delete-ratio-threshold", "portable-paths"}


@pytest.mark.parametrize("name", [prop.name for prop in PROPERTIES])
@pytest.mark.parametrize("mode", ["levels", "minor", "major", "idle", "full"])
def test_every_property_has_an_effect_on_the_run_or_is_refused(name: str, mode: str) -> None:
    terms = run_terms(mode, {name: SAMPLES[PREFIX + name]}, force=False)
    if name in ANY_MODE or (name in LEVELS_ONLY and mode not in ("idle", "full")):
        terms.apply(Policy())
        return
    with pytest.raises(InvalidInput, match=r"has no effect|is no value of a single run|cannot be used") as refused:
        terms.apply(Policy())
    assert name in refused.value.field


def test_each_value_that_a_run_may_have_is_in_the_refusal_of_one_that_it_may_not() -> None:
    with pytest.raises(InvalidInput) as refused:
        run_terms("levels", {"vacuum": "on"}, force=False).apply(Policy())
    assert set(refused.value.allowed.split(", ")) == ANY_MODE | LEVELS_ONLY


@pytest.mark.parametrize(("name", "value"), [("tolerance", "0.3"), ("portable-paths", "never")])
def test_a_value_that_force_overrides_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match="no effect with force"):
        run_terms("levels", {name: value}, force=True).apply(Policy())


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"banana": "1"}, "unknown property"),
        ({"fan-in": "banana"}, "cannot be used"),
        ({"full-file-threshold": "0.25", "fan-in": "4"}, "must exceed 1/fan-in"),
        ({"max-mode": "minor"}, "set mode to minor or major"),
        ({"filter": "dt > '2026'"}, "select partitions"),
        ({"priority": "high"}, "set priority"),
        ({"vacuum": "on"}, "set it on the table"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_do(values: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        run_terms("levels", values, force=False).apply(Policy())


def test_modes_and_values_are_those_of_compaction() -> None:
    assert run_terms("levels", {}, force=True).kinds(()) == ()
    assert run_terms("levels", {}, force=False).kinds(("sort", "compact")) == ("sort", "compact")
    assert run_terms("full", {}, force=False).kinds(()) == ("compact",)
    assert run_terms("idle", {}, force=False).kinds(("compact",)) == ("compact",)
    for terms, what in ((run_terms("full", {}, force=False), "mode full"), (RunTerms(values={"a": "b"}), "values")):
        with pytest.raises(InvalidInput, match=f"{what} cannot be used with the action sort") as refused:
            terms.kinds(("compact", "sort"))
        assert (refused.value.field, refused.value.allowed) == ("actions", "compact")


COLUMNS = (PartitionColumn("dt", "col-1", "date"), PartitionColumn("country", "col-2", "string"))


def partition(day: str | None, country: str | None) -> PartitionKey:
    return partition_key(COLUMNS, {"col-1": day, "col-2": country})


PARTITIONS = [partition(day, country) for day in ("2026-01-01", "2026-01-02") for country in ("nl", None, "a/b=c")]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], PARTITIONS),
        (["dt=2026-01-01"], PARTITIONS[:3]),
        ([{"dt": "2026-01-01"}], PARTITIONS[:3]),
        (["country=null"], [PARTITIONS[1], PARTITIONS[4]]),
        ([{"country": None}], [PARTITIONS[1], PARTITIONS[4]]),
        ([{"country": ""}], [PARTITIONS[1], PARTITIONS[4]]),
        (["dt=2026-01-02/country=nl"], [PARTITIONS[3]]),
        (["country=nl/dt=2026-01-02"], [PARTITIONS[3]]),
        (["dt=2026-01-02/country=a/b=c"], [PARTITIONS[5]]),
        (["dt=2026-01-01", "country=nl"], [*PARTITIONS[:3], PARTITIONS[3]]),
        (["dt=1999-01-01"], []),
    ],
)
def test_a_selector_means_the_partitions_that_agree_with_it(
    wanted: list[Selector], expected: list[PartitionKey]
) -> None:
    assert list(select(PARTITIONS, COLUMNS, wanted)) == expected


@pytest.mark.parametrize("wrong", ["yesterday", "day=1", "=1", {"day": "1"}, "", "dt=1/"])
def test_a_selector_that_names_no_column_is_refused_with_its_place(wrong: Selector) -> None:
    with pytest.raises(InvalidInput) as raised:
        select(PARTITIONS, COLUMNS, ["dt=2026-01-01", wrong])
    assert raised.value.field == "partitions.1"
    assert raised.value.allowed


@pytest.mark.parametrize("one", PARTITIONS)
def test_a_label_finds_its_partition(one: PartitionKey) -> None:
    assert asyncio.run(find_partition(label(one, COLUMNS), listed(PARTITIONS), COLUMNS)) == one
    assert asyncio.run(find_partition(one, listed(PARTITIONS), COLUMNS)) == one
    assert select(PARTITIONS, COLUMNS, [label(one, COLUMNS)]) == (one,)


def test_a_label_as_we_write_it_needs_no_list_of_partitions() -> None:
    wanted = partition("1999-01-01", "nl")
    assert asyncio.run(find_partition(label(wanted, COLUMNS), refusing_to_list(), COLUMNS)) == wanted


async def listed(partitions: Iterable[PartitionKey]) -> AsyncIterator[PartitionKey]:
    """List partitions as the store does."""
    for one in partitions:
        yield one


async def refusing_to_list() -> AsyncIterator[PartitionKey]:
    """Fail when someone lists."""
    raise AssertionError("listed")
    yield PartitionKey("")


def test_a_partition_that_is_gone_is_still_named_and_a_part_of_one_is_not() -> None:
    assert exact_partition("dt=1999-01-01/country=nl", COLUMNS) == partition("1999-01-01", "nl")
    with pytest.raises(InvalidInput, match="does not name exactly one partition"):
        exact_partition("dt=2026-01-01", COLUMNS)
