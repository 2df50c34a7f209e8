"""Builds the page before a wheel is packed, so that every installed decider has it; hatchling calls this."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))
import build as page


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """An editable install is made by `make setup`, which builds the page itself; an actor needs no page."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page and have the wheel carry it, although git ignores it."""
        if version == "editable":
            return
        page.build()
        build_data["artifacts"].append("decider/page/**")
