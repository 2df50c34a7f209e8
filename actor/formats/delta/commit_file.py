"""One commit of a Delta log as it was read: its actions, and the digest of the bytes that they were read from.

A version number alone does not identify a commit: an operator may undo commits, and writers make others of the same
numbers.
"""

import json
from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True)
class NewCommits:
    """The commits since a version, as `NextSnapshot.java` read them.

    described: its own words for them. is_known: they are all there are, and that version's commit is the one that was
    known.
    """

    described: str
    is_known: bool
    commits: tuple[CommitFile, ...]


def decode_new_commits(answer: bytes) -> NewCommits:
    """Decode what the JVM read: a line that describes the commits, and the bytes of all."""
    line, _, rest = answer.partition(b"\n")
    described = json.loads(line)
    return NewCommits(line.decode(), described["is_known"], tuple(_commits(described["commits"], rest)))


def _commits(described: list[dict[str, Any]], texts: bytes) -> Iterator[CommitFile]:
    at = 0
    for one in described:
        end = at + one["bytes"]
        yield CommitFile(one["digest"], texts[at:end].decode())
        at = end
