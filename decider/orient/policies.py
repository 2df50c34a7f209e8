"""Which policy is in force for a table, and where each value came from: table properties over the service's defaults.

A table whose properties hold anything unusable keeps the last good layer as a whole: half of a change is nobody's
intention. What is wrong is kept beside it, to be shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from shared.errors import InvalidInput
from shared.policy import Issue, Layer, Policy, apply, read_properties

LastGood = Mapping[str, str]
"""The newest configuration that could be used as a whole, as property names and values."""


@dataclass(frozen=True, slots=True)
class Effective:
    """The policy in force; `origins` maps each field to the property that set it, or to `default`."""

    policy: Policy
    origins: Mapping[str, str]
    issues: tuple[Issue, ...]
    last_good: LastGood


def effective(default: Policy, configuration: Mapping[str, str], last_good: LastGood) -> Effective:
    """Resolve a table's configuration; on any issue the last good one stays in force and the issues are returned."""
    layer, policy, issues = _try(default, configuration)
    if policy is not None:
        return Effective(policy, _origins(layer), (), dict(configuration))
    layer, policy, _ = _try(default, last_good)
    if policy is None:
        layer, policy, last_good = Layer(), default, {}
    return Effective(policy, _origins(layer), issues, dict(last_good))


def _try(default: Policy, configuration: Mapping[str, str]) -> tuple[Layer, Policy | None, tuple[Issue, ...]]:
    layer = read_properties(configuration)
    if layer.issues:
        return layer, None, layer.issues
    try:
        return layer, apply(default, layer), ()
    except InvalidInput as problem:
        named = ", ".join(sorted(layer.named.values()))
        return layer, None, (Issue(named, problem.field, str(problem)),)


def _origins(layer: Layer) -> dict[str, str]:
    return {f.name: layer.named.get(f.name, "default") for f in fields(Policy)}
