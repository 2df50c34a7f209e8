"""Schemas of the policy in effect, with the source of each value."""

from pydantic import Field

from decider.web.base_model import ResponseModel


class PolicyValue(ResponseModel):
    """One value of a table's policy and its source."""

    property: str = Field(description="Table property.")
    value: bool | int | float | str | None = Field(description="Value in effect; null means off.")
    unit: str = Field(description="Unit: bytes, seconds, files, jobs, slots, ratio or share; empty if none.")
    source: str = Field(description="`request` (override), `table`, `tenant`, `service` or `default`.")
    set_by: str = Field(description="Property or variable that sets the value; `default` if none does.")
    description: str = Field(description="Description.")


class PolicyIssue(ResponseModel):
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
