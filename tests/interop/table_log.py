"""A Delta log in plain Python, from its JSON commits alone: live files, metadata and protocol, as any reader must see.

It shares no line with the code under test. A path is compared as text: the protocol (Delta PROTOCOL.md, "Add File and
Remove File") identifies a logical file by its path as written and its deletion vector.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Action = dict[str, Any]


@dataclass(slots=True)
class TableLog:
    """All commits of a table, replayed."""

    location: Path
    version: int = -1
    metadata: Action = field(default_factory=dict)
    protocol: Action = field(default_factory=dict)
    commits: list[list[Action]] = field(default_factory=list)
    _live: dict[tuple[str, str | None], Action] = field(default_factory=dict)

    @classmethod
    def read(cls, location: Path) -> "TableLog":
        """Replay the log of a table; none of its commits may have been cleaned up."""
        log = cls(location)
        while (file := location / "_delta_log" / f"{log.version + 1:020d}.json").exists():
            log._apply([json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line])
        return log

    def _apply(self, actions: list[Action]) -> None:
        self.version += 1
        self.commits.append(actions)
        for action in actions:
            self.metadata = action.get("metaData") or self.metadata
            self.protocol = action.get("protocol") or self.protocol
        for remove in (action["remove"] for action in actions if action.get("remove")):
            self._live.pop(_identity(remove), None)
        for add in (action["add"] for action in actions if action.get("add")):
            self._live[_identity(add)] = add

    def live(self) -> list[Action]:
        """Return the add actions of the live files."""
        return list(self._live.values())

    def file(self, add: Action) -> Path:
        """Return where the data file of an add action lies."""
        path: str = add["path"]
        return Path(unquote(urlsplit(path).path)) if path.startswith("file:") else self.location / unquote(path)

    @property
    def schema(self) -> Action:
        """The schema as the log writes it."""
        schema: Action = json.loads(self.metadata["schemaString"])
        return schema

    @property
    def types(self) -> dict[str, Any]:
        """The type of each column by its physical name."""
        return {physical_name(column): column["type"] for column in self.schema["fields"]}

    @property
    def column_mapping(self) -> bool:
        """True if the files' columns have other names than the table's."""
        return self.metadata.get("configuration", {}).get("delta.columnMapping.mode", "none") != "none"


def physical_name(column: Action) -> str:
    """Return the name that a column has in data files and partition values."""
    name: str = column["metadata"].get("delta.columnMapping.physicalName", column["name"])
    return name


def _identity(action: Action) -> tuple[str, str | None]:
    vector = action.get("deletionVector")
    if not vector:
        return action["path"], None
    return action["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"
