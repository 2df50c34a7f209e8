"""Tags of data files: Iceberg's files have none, so the snapshot that adds a file names its tags.

A cell is in the name of the file itself, which outlives the snapshot.
"""

from collections.abc import Mapping
from json import dumps, loads

from shared.formats.iceberg.cell_names import tag_of
from shared.layout.cells.tags import CELL_TAG


def encode_tags(tags: Mapping[str, Mapping[str, str]]) -> str:
    """Write the tags of data files, by the last part of their paths, as the text of `TAGS_KEY`."""
    return dumps({name: dict(of_file) for name, of_file in sorted(tags.items())}, separators=(",", ":"))


def decode_tags(text: str | None) -> dict[str, dict[str, str]]:
    """Read what `encode_tags` wrote; nothing from any text of another writer."""
    try:
        found = loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        return {}
    return {name: {key: value for key, value in one.items() if isinstance(value, str)} for name, one in found.items()}


def file_tags(tags: Mapping[str, Mapping[str, str]], path: str) -> Mapping[str, str]:
    """Return the tags of a data file by its path, of those that its snapshot names."""
    name = path.rpartition("/")[2]
    own, cell = tags.get(name, {}), tag_of(name)
    return own if cell is None else {**own, CELL_TAG: cell}
