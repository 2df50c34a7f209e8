"""Schema of the caller of a request."""

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class CallerView(ResponseModel):
    """The caller's role."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {"role": "viewer", "may_act_as": ["viewer"], "token_required": True, "release": "0.1.0"},
            ]
        },
    )

    role: str = Field(description="`viewer`, `operator` or `admin`.")
    may_act_as: tuple[str, ...] = Field(description="Roles whose operations are permitted.")
    token_required: bool = Field(description="Whether requests need a token.")
    release: str = Field(description="Release of this decider.")
