"""Schemas of predicted and measured cost: sums with their number of runs, never a ratio alone."""

from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel

CALIBRATION_EXAMPLE: dict[str, Any] = {
    "runs": 12,
    "predicted_bytes": 150994944,
    "measured_bytes": 152043520,
    "predicted_files_removed": 130,
    "measured_files_removed": 131,
    "merged_input_bytes": 60817408,
    "merged_output_bytes": 60012544,
    "shrink": 0.96875,
    "filled_input_bytes": 91226112,
    "filled_output_bytes": 74805411,
    "full_shrink": 0.84375,
    "bytes_ratio": 1.0052,
    "files_removed_ratio": 1.0058,
    "groups_promoted": 20,
    "groups_not_promoted": 1,
}


class TableCalibration(ResponseModel):
    """Predicted and measured cost of a table's latest rewrites, and the correction applied to the next prediction."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [CALIBRATION_EXAMPLE]})

    runs: int = Field(description="Number of runs in the sums: the latest 32 to 63.")
    predicted_bytes: int = Field(description="Predicted bytes read, before correction.")
    measured_bytes: int = Field(description="Bytes read.")
    predicted_files_removed: int = Field(description="Predicted decrease of the file count, before correction.")
    measured_files_removed: int = Field(description="Measured decrease of the file count.")
    merged_input_bytes: int = Field(
        description="Input bytes of file groups without deleted rows that total less than a full file."
    )
    merged_output_bytes: int = Field(description="Output bytes of these file groups.")
    shrink: float = Field(
        description="Output size as a share of input size, used by the promotion rule for groups that total less than "
        "a full file."
    )
    filled_input_bytes: int = Field(
        description="Input bytes of file groups without deleted rows that total a full file or more."
    )
    filled_output_bytes: int = Field(description="Output bytes of these file groups.")
    full_shrink: float = Field(
        description="Output size as a share of input size, used by the promotion rule for groups that total a full "
        "file or more."
    )
    bytes_ratio: float = Field(description="Correction factor for the next prediction of bytes.")
    files_removed_ratio: float = Field(description="Correction factor for the next prediction of removed files.")
    groups_promoted: int = Field(
        description="File groups whose output reached a higher level than every input, since registration."
    )
    groups_not_promoted: int = Field(
        description="File groups whose output was smaller than predicted and stayed on its level."
    )


class JobCalibration(ResponseModel):
    """Predicted and measured cost over the finished runs of one job that rewrote files."""

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

    runs: int = Field(description="Number of runs in the sums.")
    predicted_bytes: int = Field(description="Predicted bytes read.")
    measured_bytes: int = Field(description="Bytes read.")
    predicted_files_removed: int = Field(description="Predicted decrease of the file count.")
    measured_files_removed: int = Field(description="Measured decrease of the file count.")
