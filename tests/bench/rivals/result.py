"""What a part of the bench returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.limits import Limit


@dataclass(frozen=True, slots=True)
class Result:
    """`table` in Markdown, `picture` as SVG, `setting`: sizes and versions, as a sentence for people."""

    table: str
    picture: str
    setting: str
    goals: Sequence[Limit]
    figures: dict[str, Any]
