"""An independent replay of a Delta log, as plain as can be: what the real reader says is compared with this.

It reads JSON commits only, oldest first, and shares no line of code with the reader.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PlainFile:
    """What a log says of one live file, undecoded."""

    path: str
    dv: str | None
    size: int
    partition_values: tuple[tuple[str, str | None], ...]


def plain_replay(table: Path, version: int) -> set[PlainFile]:
    """Replay commits 0 to `version`; paths count as the same if they are after `file:` and slashes are stripped."""
    live: dict[tuple[str, str | None], PlainFile] = {}
    for number in range(version + 1):
        text = (table / "_delta_log" / f"{number:020d}.json").read_text(encoding="utf-8")
        actions = [json.loads(line) for line in text.split("\n") if line]
        for action in (item["remove"] for item in actions if item.get("remove")):
            live.pop(_key(action), None)
        for action in (item["add"] for item in actions if item.get("add")):
            values = tuple(sorted((action.get("partitionValues") or {}).items()))
            live[_key(action)] = PlainFile(action["path"], _key(action)[1], action["size"], values)
    return set(live.values())


def _key(action: dict[str, Any]) -> tuple[str, str | None]:
    path = action["path"]
    if path.startswith(("/", "file:")):
        path = "/" + path.removeprefix("file:").lstrip("/")
    vector = action.get("deletionVector")
    if not vector:
        return path, None
    suffix = "" if vector.get("offset") is None else f"@{vector['offset']}"
    return path, f"{vector['storageType']}{vector['pathOrInlineDv']}{suffix}"
