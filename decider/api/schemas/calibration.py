"""Predicted against measured over the wire: sums with the number of runs behind them, never a ratio alone."""

from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel

CALIBRATION_EXAMPLE: dict[str, Any] = {
    "runs": 12,
    "predicted_bytes": 150994944,
    "measured_bytes": 152043520,
    "predicted_files_removed": 130,
    "measured_files_removed": 131,
    "merged_input_bytes": 152043520,
    "merged_output_bytes": 121634816,
    "shrink": 0.84375,
    "bytes_ratio": 1.0052,
    "files_removed_ratio": 1.0058,
    "groups_promoted": 20,
    "groups_not_promoted": 1,
}


class TableCalibration(ResponseModel):
    """What was predicted for a table's newest rewrites, what was measured, and what is believed of the next one."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [CALIBRATION_EXAMPLE]})

    runs: int = Field(description="Runs in the sums: the newest ones, from 32 to 63 of them once there were so many.")
    predicted_bytes: int = Field(description="Bytes to read, as the state predicted them.")
    measured_bytes: int = Field(description="Bytes read.")
    predicted_files_removed: int = Field(description="Files that the state predicted to be removed.")
    measured_files_removed: int = Field(description="Files removed.")
    merged_input_bytes: int = Field(description="Inputs, in bytes, of file groups without deleted rows.")
    merged_output_bytes: int = Field(description="Their outputs.")
    shrink: float = Field(description="Size of an output as a share of its inputs, as the promotion rule predicts it.")
    bytes_ratio: float = Field(description="Factor that corrects the next prediction of bytes.")
    files_removed_ratio: float = Field(description="Factor that corrects the next prediction of files removed.")
    groups_promoted: int = Field(description="File groups ever rewritten whose output rose above every input.")
    groups_not_promoted: int = Field(
        description="File groups whose output was smaller than predicted and did not rise."
    )


class JobCalibration(ResponseModel):
    """What was predicted and measured over the finished runs of one job that rewrote something."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "runs": 1,
                    "predicted_bytes": 12582912,
                    "measured_bytes": 12582912,
                    "predicted_files_removed": 11,
                    "measured_files_removed": 11,
                }
            ]
        },
    )

    runs: int = Field(description="Runs in the sums.")
    predicted_bytes: int = Field(description="Bytes to read, as predicted with all that was known by then.")
    measured_bytes: int = Field(description="Bytes read.")
    predicted_files_removed: int = Field(description="Files to remove, as predicted.")
    measured_files_removed: int = Field(description="Files removed.")
