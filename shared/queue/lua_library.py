"""The scripts as the server gets them: one library of functions, which it compiles once and not at every call.

A line `-- include: upsert` includes `lua/include/upsert.lua`; each include is in the library once, before the scripts
that need it, so that each rule is written once. A script's body becomes a function. All names carry a hash of the text:
releases that live side by side each call their own. Calls of scripts by EVALSHA would build some sixty closures each
time, which took longer than the commands of a claim (docs/benchmarks.md).
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from hashlib import sha1
from importlib.resources import files
from types import MappingProxyType

LIBRARY = "lakewright_"
"""Prefix of the names of all Lakewright libraries."""

NOT_FOUND = "Function not found"
"""Error of a server that does not have the library, or has lost it."""

_INCLUDE = re.compile(r"^-- include: (\w+)$", re.MULTILINE)
_SCRIPT = re.compile(r"#!lua(?: flags=([a-z,-]+))?\n(--\[\[.*?\]\]\n)(.*)", re.DOTALL)


class ScriptName(StrEnum):
    """One script per transition and per read."""

    AUDIT_IN_FLIGHT = "audit_in_flight"
    AUDIT_FLOW = "audit_flow"
    AUDIT_INDEX = "audit_index"
    AUDIT_JOBS = "audit_jobs"
    AUDIT_NODE = "audit_node"
    AUDIT_THROTTLED = "audit_throttled"
    BUDGET = "budget"
    CANCEL = "cancel"
    CLAIM = "claim"
    CONFIGURE = "configure"
    DECIDE = "decide"
    DEPTH = "depth"
    ENQUEUE = "enqueue"
    FINISH = "finish"
    FINISH_AND_CLAIM = "finish_and_claim"
    FORGET_REFUSALS = "forget_refusals"
    HEARTBEAT = "heartbeat"
    HISTORY = "history"
    INGEST = "ingest"
    LIMIT = "limit"
    LIST = "list"
    ORDER = "order"
    PAUSE = "pause"
    PREEMPT = "preempt"
    EXPEDITE = "expedite"
    REQUEUE = "requeue"
    VIEW = "view"
    WEIGHT = "weight"
    WINDOW = "window"


class ScriptLibrary:
    """Assembles the library, at the first use.

    replaced: texts to use instead of pieces of that name. Tests put a clock of their own in the place of `time`;
    no service does.
    """

    def __init__(self, replaced: Mapping[str, str] = MappingProxyType({})) -> None:
        self._replaced = dict(replaced)

    @cached_property
    def text(self) -> str:
        """The whole library, as FUNCTION LOAD takes it."""
        return f"#!lua name={self.name}\n{self._body.replace(_HASH, self._hash)}"

    @cached_property
    def name(self) -> str:
        """The library's own name."""
        return f"{LIBRARY}{self._hash}"

    def function(self, script: ScriptName) -> str:
        """Return the name by which FCALL knows a script."""
        return f"lw_{self._hash}_{script}"

    @cached_property
    def _hash(self) -> str:
        return sha1(self._body.encode(), usedforsecurity=False).hexdigest()[:12]

    @cached_property
    def _body(self) -> str:
        pieces: dict[str, str] = {}
        functions = [self._function(script, pieces) for script in ScriptName]
        return "\n".join([*pieces.values(), *functions])

    def _function(self, script: ScriptName, pieces: dict[str, str]) -> str:
        flags, header, body = script_parts(script)
        return (
            f"{header}redis.register_function{{function_name = 'lw_{_HASH}_{script}', flags = {{{flags}}},\n"
            f"callback = function(KEYS, ARGV)\nbegin_call(KEYS[1])\n{self._include(body, pieces)}end}}\n"
        )

    def _include(self, text: str, pieces: dict[str, str]) -> str:
        for piece in _INCLUDE.findall(text):
            if piece not in pieces:
                found = self._include(self._replaced.get(piece) or source(f"include/{piece}"), pieces)
                pieces[piece] = found
        return _INCLUDE.sub("", text)


_HASH = "@hash@"
"""Placeholder of the hash in the text that is hashed."""


def script_parts(script: ScriptName) -> tuple[str, str, str]:
    """Return a script's flags as Lua writes them in a list, its header, and its body."""
    parts = _SCRIPT.fullmatch(source(script))
    if parts is None:
        raise ValueError(f"script {script} does not begin with '#!lua' and its header")
    flags = ", ".join(f"'{flag}'" for flag in (parts[1] or "").split(",") if flag)
    return flags, parts[2], parts[3]


def source(name: str) -> str:
    """Return the text of one file below `scripts`, without its ending, as it was written."""
    return files("shared.queue").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
