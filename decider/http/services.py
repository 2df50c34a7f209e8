"""The parts that the API stands on, built by `services/decider` and handed over as one value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Path, Request
from redis.asyncio import Redis

from decider.adhoc import Adhoc
from decider.duties.queue_care import QueueCare
from decider.duties.sweep import Sweep
from decider.http.metrics import Metrics
from decider.http.problems import not_found
from decider.http.schemas.base import TABLE_NAME
from decider.inbox import Inbox
from decider.intake import Intake
from decider.observe.delta_log import DeltaLog
from decider.observe.object_reads import ReadMeter
from decider.store.counters import Counters
from decider.store.cursors import TableStates
from decider.store.ledgers import Ledgers
from decider.store.queue import AsyncQueue
from decider.store.runs import Runs
from decider.store.steering import Steering
from decider.store.tables import TableRegistry
from shared.policy import Policy
from shared.table import TableRef


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """What the API itself is told.

    max_body_bytes: bound of a request's body; 1 MiB takes ten thousand events and bounds what a caller can make us
    hold. token: what /v1 calls must carry, None on the loopback address. bucket_locations: where buckets named by
    events are found.
    """

    release: str = "unreleased"
    max_body_bytes: int = 1_048_576
    token: str | None = None
    bucket_locations: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class Started:
    """When the process started: by the calendar, and on the monotonic clock, from which the uptime is told."""

    at_ms: int
    monotonic_s: float


@dataclass(frozen=True, slots=True)
class Services:
    """The built parts."""

    redis: Redis
    queue: AsyncQueue
    registry: TableRegistry
    states: TableStates
    ledgers: Ledgers
    counters: Counters
    runs: Runs
    steering: Steering
    queue_care: QueueCare
    intake: Intake
    inbox: Inbox
    sweep: Sweep
    adhoc: Adhoc
    open_log: Callable[[str], DeltaLog]
    meter: ReadMeter
    metrics: Metrics
    now_ms: Callable[[], int]
    started: Started
    settings: HttpSettings


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Parts = Annotated[Services, Depends(_services)]
"""Gives a call the built parts."""

TableName = Annotated[
    str,
    Path(
        pattern=f"^{TABLE_NAME}$",
        description="Name or id of the table.",
        openapi_examples={"by name": {"value": "sales.orders"}},
    ),
]


async def _known_table(name: TableName, parts: Parts) -> TableRef:
    table = await parts.registry.find(name)
    if table is None:
        raise not_found("table", name)
    return table


KnownTable = Annotated[TableRef, Depends(_known_table)]
"""Gives a call the table that its path names, or answers 404."""
