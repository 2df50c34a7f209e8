"""The terms of one requested run: its mode, and values that replace the table's own for this run alone.

Whatever would have no effect is refused with the reason, because a person who set it expects one. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from shared.errors import InvalidInput
from shared.jobs.payload import COMPACT, RewriteKind
from shared.policy.names import PREFIX
from shared.policy.policy import MaxMode, Policy, apply
from shared.policy.properties import as_properties, read_settings
from shared.policy.property_table import PROPERTIES


class RunMode(StrEnum):
    """Extent of a run: what levels permit, at most below the top level, the last merge once, or everything."""

    LEVELS = "levels"
    MINOR = "minor"
    MAJOR = "major"
    IDLE = "idle"
    FULL = "full"

    @property
    def rewrite_kind(self) -> RewriteKind:
        """The extent of the run's jobs."""
        return RewriteKind(self) if self in (RunMode.IDLE, RunMode.FULL) else RewriteKind.LEVELS


_ANY_MODE = frozenset(
    {"target_bytes", "fan_in", "full_file_threshold", "max_bytes_per_job", "row_group_copy", "proofread"}
)
"""Fields whose value may be set for one run, in any mode."""

_BY_LEVELS = frozenset({"tolerance", "min_input_files", "max_small_files", "delete_ratio_threshold", "portable_paths"})
"""Further ones, which only decide what the levels permit."""

_SETTABLE = ", ".join(
    prop.name for prop in PROPERTIES if prop.policy_field in _ANY_MODE or prop.policy_field in _BY_LEVELS
)

_BY_MODE = {"max_mode": "set mode to minor or major", "filter": "select partitions", "priority": "set priority"}
"""Fields that a request sets by other means, which the refusal names."""

_FORCED = frozenset({"tolerance", "enabled", "portable_paths"})
"""Fields that `force` sets."""


@dataclass(frozen=True, slots=True)
class RunTerms:
    """Mode, and property values by name; `force` overrides tolerance and switch."""

    mode: RunMode = RunMode.LEVELS
    values: Mapping[str, str] = field(default_factory=dict)
    force: bool = False

    @property
    def is_custom(self) -> bool:
        """True if the run has a mode or values of its own."""
        return self.mode is not RunMode.LEVELS or bool(self.values)

    def kinds(self, requested: Sequence[str]) -> tuple[str, ...]:
        """Return the kinds of actions: those requested (none: all); a mode or values are for compaction alone.

        Raises InvalidInput where a mode or values are to apply to another action.
        """
        if self.mode is RunMode.LEVELS and not self.values:
            return tuple(requested)
        others = [kind for kind in requested if kind != COMPACT]
        if others:
            what = "values" if self.mode is RunMode.LEVELS else f"mode {self.mode}"
            raise InvalidInput(
                f"{what} cannot be used with the action {others[0]}: only {COMPACT} has modes and values",
                field="actions",
                allowed=COMPACT,
            )
        return (COMPACT,)

    def apply(self, policy: Policy) -> Policy:
        """Return the table's policy with the values of the run. Raises InvalidInput for a value without effect."""
        layer = read_settings(self.values)
        for name in layer.values:
            self._check(name, layer.property_names[name])
        policy = apply(policy, layer)
        if self.mode in (RunMode.MINOR, RunMode.MAJOR):
            policy = replace(policy, max_mode=MaxMode(self.mode))
        if self.force or self.mode is RunMode.FULL:
            policy = policy.for_manual_rewrite
        return replace(policy, enabled=True, tolerance=Fraction(0)) if self.force else policy

    def _check(self, name: str, given: str) -> None:
        named = f"values.{given.removeprefix(PREFIX)}"
        if self.force and name in _FORCED:
            raise InvalidInput(f"{given} has no effect with force, which overrides it", field=named)
        if name in _ANY_MODE:
            return
        if name not in _BY_LEVELS:
            hint = _BY_MODE.get(name, "set it on the table")
            raise InvalidInput(f"{given} is no value of a single run; {hint}", field=named, allowed=_SETTABLE)
        if self.mode.rewrite_kind is not RewriteKind.LEVELS:
            raise InvalidInput(
                f"{given} has no effect in mode {self.mode}, which does not depend on it", field=named, allowed="levels"
            )


PLAIN = RunTerms()
"""The terms of a run that an event would lead to, too."""


def run_terms(mode: str, values: Mapping[str, str], *, force: bool) -> RunTerms:
    """Read the terms of a request. Raises InvalidInput for a mode that does not exist."""
    try:
        return RunTerms(RunMode(mode), as_properties(values), force)
    except ValueError:
        raise InvalidInput(
            f"mode {mode!r}: expected one of {', '.join(RunMode)}", field="mode", allowed=", ".join(RunMode)
        ) from None
