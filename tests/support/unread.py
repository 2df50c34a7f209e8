"""Proofreading for tests whose files exist in memory alone: no reader could open them."""

from types import SimpleNamespace
from typing import Any, cast

from actor.formats.delta.proofreading import Proofs
from actor.proofread.model import Proof, Reading
from actor.proofread.proofreader import Proofreader


def _unread(*_given: Any, **_told: Any) -> Proof:
    return Proof(Reading.NONE, unverified_because="a table in memory")


UNREADING = cast("Proofreader", SimpleNamespace(check=_unread, cancel=lambda _tag: None))
"""A proofreader that compares nothing, and says so."""

UNREAD = cast("Proofs", SimpleNamespace(check=_unread))
"""The same for the groups of one rewrite."""
