"""The terms of a requested run: each value has an effect in the mode it is set for, or is refused with the reason."""

from fractions import Fraction

import pytest

from decider.optimize.run_terms import RunMode, RunTerms, run_terms
from shared.errors import InvalidInput
from shared.jobs.payload import RewriteKind
from shared.policy.names import PREFIX
from shared.policy.policy import MIB, MaxMode, Policy, PortablePaths
from shared.policy.property_table import PROPERTIES
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
