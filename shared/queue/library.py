"""The scripts as the server gets them: pieces are included textually, so that each rule is written once.

A line `-- include: put` is replaced by `scripts/include/put.lua` the first time it is met; a piece that is needed by
two others is there once. The server knows a script by the SHA-1 of this text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha1
from importlib.resources import files
from types import MappingProxyType

_INCLUDE = re.compile(r"^-- include: (\w+)$")


class ScriptName(StrEnum):
    """One script per transition and per read."""

    AUDIT_FLIGHT = "audit_flight"
    AUDIT_FLOW = "audit_flow"
    AUDIT_INDEX = "audit_index"
    AUDIT_JOBS = "audit_jobs"
    AUDIT_NODE = "audit_node"
    AUDIT_PARKED = "audit_parked"
    CANCEL = "cancel"
    CLAIM = "claim"
    CONFIGURE = "configure"
    DECIDE = "decide"
    DEPTH = "depth"
    ENQUEUE = "enqueue"
    FINISH = "finish"
    HEARTBEAT = "heartbeat"
    HISTORY = "history"
    INGEST = "ingest"
    LIMIT = "limit"
    LIST = "list"
    ORDER = "order"
    PAUSE = "pause"
    PREEMPT = "preempt"
    PROMOTE = "promote"
    REQUEUE = "requeue"
    VIEW = "view"
    WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Script:
    """A script's whole text and the hash by which EVALSHA calls it."""

    text: str
    sha: str


class ScriptLibrary:
    """Assembles scripts and keeps those already assembled.

    replaced: texts to use instead of pieces of that name. Tests put a clock of their own in the place of `time`;
    no service does.
    """

    def __init__(self, replaced: Mapping[str, str] = MappingProxyType({})) -> None:
        self._replaced = dict(replaced)
        self._scripts: dict[ScriptName, Script] = {}

    def script(self, name: ScriptName) -> Script:
        """Return one script, assembled."""
        found = self._scripts.get(name)
        if found is None:
            text = "\n".join(self._expanded(source(name), set())) + "\n"
            found = Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())
            self._scripts[name] = found
        return found

    def _expanded(self, text: str, included: set[str]) -> list[str]:
        lines: list[str] = []
        for line in text.splitlines():
            match = _INCLUDE.match(line)
            if match is None:
                lines.append(line)
            elif (piece := match[1]) not in included:
                included.add(piece)
                lines.extend(self._expanded(self._replaced.get(piece) or source(f"include/{piece}"), included))
        return lines


def source(name: str) -> str:
    """Return the text of one file below `scripts`, without its ending, as it was written."""
    return files("shared.queue").joinpath("scripts", f"{name}.lua").read_text(encoding="utf-8")
