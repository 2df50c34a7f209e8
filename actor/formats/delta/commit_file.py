"""One commit of a Delta log as it was read: its actions, and the digest of the bytes that they were read from.

A version number alone does not identify a commit: an operator may undo commits, and writers make others of the same
numbers.
"""

import json
from dataclasses import dataclass
from typing import Any

DIGEST_DIGITS = 64
"""Hexadecimal digits of a SHA-256, which `CommitFile.java` puts before the text."""


@dataclass(frozen=True, slots=True)
class CommitFile:
    """A commit's digest and text."""

    digest: str
    text: str

    @property
    def actions(self) -> list[dict[str, Any]]:
        """All actions, each a dictionary with one key."""
        # Not splitlines: values may hold U+2028.
        return [json.loads(line) for line in self.text.split("\n") if line]
