"""A file as a listing of a store shows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the store: its name below the table's folder, size in bytes, and time of its last change."""

    name: str
    size_bytes: int
    modified_ms: int
