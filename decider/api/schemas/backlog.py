"""Schemas of the backlog: predicted seconds of work, for scalers."""

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class FormatBacklog(ResponseModel):
    """Backlog of the tables of one format."""

    jobs: int = Field(description="Jobs that wait for an actor or run.")
    work_s: int = Field(description="Predicted seconds that they take one slot.")
    bands: dict[str, int] = Field(description="The same seconds by band.")


class QueueBacklog(ResponseModel):
    """Predicted work of the queue; 0 exactly if no job that an actor could run waits, and none runs."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "jobs": 9,
                    "running": 2,
                    "work_s": 31,
                    "formats": {"delta": {"jobs": 9, "work_s": 31, "bands": {"high": 4, "normal": 27}}},
                    "job_s": 1.2,
                    "gib_s": 8.5,
                    "measured_runs": 40,
                }
            ]
        },
    )

    jobs: int = Field(description="Jobs that wait for an actor or run; paused and delayed ones are left out.")
    running: int = Field(description="Jobs that run.")
    work_s: int = Field(description="Predicted seconds that all of them take one slot; the value to scale actors by.")
    formats: dict[str, FormatBacklog] = Field(description="Backlog by table format.")
    job_s: float = Field(description="Predicted seconds of a run without data.")
    gib_s: float = Field(description="Predicted additional seconds for each GiB.")
    measured_runs: int = Field(description="Recent runs that this prediction is fitted to; below 5, it is a default.")
