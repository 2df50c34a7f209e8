"""Tags of data files: Iceberg's files have none, so the snapshot that adds a file names its tags."""

from collections.abc import Mapping
from json import dumps, loads


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
    """Return the tags of a data file by its path."""
    return tags.get(path.rpartition("/")[2], {})
