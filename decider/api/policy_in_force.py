"""The policy in effect, and the source of each value."""

from typing import Any

from pydantic import Field

from decider.state.effective_policy import EffectivePolicy, PolicySource
from decider.web.base_model import ResponseModel, read_from
from shared.policy.names import PREFIX
from shared.policy.partition_filter import describe_moving
from shared.policy.property_table import PROPERTIES


class PolicyValue(ResponseModel):
    """One value of a table's policy and its source."""

    property: str = Field(description="Table property.")
    value: bool | int | float | str | None = Field(description="Value in effect; null means off.")
    unit: str = Field(description="Unit: bytes, seconds, files, jobs, slots, ratio or share; empty if none.")
    source: str = Field(description="`request` (override), `table`, `tenant`, `service` or `default`.")
    set_by: str = Field(description="Property or variable that sets the value; `default` if none does.")
    description: str = Field(description="Description.")


class PolicyIssue(ResponseModel, alias_generator=read_from(blocking="is_blocking")):
    """A property that cannot be applied. A blocking issue keeps the last valid policy in effect."""

    property: str = Field(description="Property.")
    value: str = Field(description="Configured value.")
    reason: str = Field(description="Reason.")
    blocking: bool = Field(
        description="Whether the issue keeps the last valid policy in effect; otherwise the property is ignored."
    )


class PolicyInForce(ResponseModel):
    """Policy in effect."""

    version: str = Field(description="Digest of all values; decisions refer to it.")
    values: tuple[PolicyValue, ...] = Field(description="Values.")
    issues: tuple[PolicyIssue, ...] = Field(description="Properties that cannot be applied.")
    notes: tuple[str, ...] = Field(description="Further notes.")


_SOURCE_NAMES = {PolicySource.SERVICE: "LAKEWRIGHT_POLICY", PolicySource.DEFAULT: "default"}
"""Name of the source for a value that no property sets."""


def policy_view(in_force: EffectivePolicy, now_ms: int) -> PolicyInForce:
    """Show the policy, for each value the property that set it, and a filter that moves as of now."""
    values = tuple(
        PolicyValue(
            property=PREFIX + prop.name,
            value=_plain(getattr(in_force.policy, prop.policy_field)),
            unit=prop.unit,
            source=in_force.origins[prop.policy_field].source,
            set_by=in_force.origins[prop.policy_field].name
            or _SOURCE_NAMES[in_force.origins[prop.policy_field].source],
            description=prop.description,
        )
        for prop in PROPERTIES
    )
    issues = tuple(map(PolicyIssue.of, in_force.issues))
    notes = (*in_force.notes, *describe_moving(in_force.policy.filter, now_ms))
    return PolicyInForce(version=in_force.policy.version, values=values, issues=issues, notes=notes)


def _plain(value: Any) -> bool | int | float | str | None:
    return value if value is None or isinstance(value, bool | int | str) else float(value)
