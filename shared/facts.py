"""What a job says about its table: written by the decider, read by the actor, opaque to the queue.

A job names a cell and never a file: the actor plans on the live snapshot, so a plan is never stale. The decision's
numbers travel along to be compared with what is found.
"""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from shared.policy import Policy


class Ask(StrEnum):
    """What a job asks for: what the levels permit, that and the last merge of a quiet cell, or a full rewrite."""

    LEVELS = "levels"
    SETTLE = "settle"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Predicted:
    """What the decision expected of the rewrite."""

    files_replaced: int
    files_removed: int
    bytes: int


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Where the table is, what its owner calls it, the policy to plan with, and why the job exists.

    `terms` is the digest of the properties that the policy was read from (`policy.terms`); an actor that finds others
    on the table has not satisfied what may be asked for under them.
    """

    location: str
    name: str
    policy: Policy
    reason: str
    predicted: Predicted
    terms: str = ""
    ask: Ask = Ask.LEVELS

    def encode(self) -> str:
        """Write the facts as JSON text."""
        return json.dumps(
            {
                "location": self.location,
                "name": self.name,
                "policy": self.policy.encode(),
                "reason": self.reason,
                "predicted": asdict(self.predicted),
                "terms": self.terms,
                "ask": self.ask,
            },
            separators=(",", ":"),
        )

    @staticmethod
    def decode(text: str) -> "JobFacts":
        """Read what `encode` wrote."""
        raw = json.loads(text)
        return JobFacts(
            raw["location"],
            raw["name"],
            Policy.decode(raw["policy"]),
            raw["reason"],
            Predicted(**raw["predicted"]),
            raw.get("terms", ""),
            Ask(raw.get("ask", Ask.LEVELS)),
        )
