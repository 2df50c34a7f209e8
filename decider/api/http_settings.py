"""Settings of the API, and its limits per request, per client and per process."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from decider.api.shared_reads import SharedReads
from decider.gateway.concurrency import BoundedSemaphore, CallLimits, PerClientLimit
from decider.gateway.credentials import Credentials
from shared.prices import Prices


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Settings of the API.

    credentials: required of clients, none on the loopback address. bucket_locations: URI prefixes of buckets in events.
    webhook_origins: origins that pass the CloudEvents webhook validation. prices: of what runs use, None without any.
    is_supervised: whether a supervisor starts and ends actors as the queue's setting `actors` says.
    """

    release: str = "unreleased"
    limits: CallLimits = field(default_factory=CallLimits)
    credentials: Credentials = field(default_factory=Credentials)
    webhook_origins: tuple[str, ...] = ()
    bucket_locations: Mapping[str, str] = field(default_factory=dict)
    prices: Prices | None = None
    is_supervised: bool = False


@dataclass(slots=True)
class StreamSlots(PerClientLimit):
    """Maximum number of stream readers, and their poll interval: each poll costs two small reads of Redis.

    One client has at most a quarter of the slots.
    """

    limit: int = 64
    per_client: int = 16
    poll_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ExpensiveCalls:
    """Concurrency limits of expensive requests.

    what_if: seconds of computation, so one at a time without a queue. table_reads: a table's history, status and
    decisions, which read much; a dashboard requests several at once, so some wait. optimize: seconds for thousands of
    partitions. queue_reads: the queue, its backlog and its jobs, each read once for all who wait for it.
    """

    optimize: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore("optimize", at_once=2, waiting=30))
    queue_reads: SharedReads = field(default_factory=SharedReads)
    what_if: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore("what-if", at_once=1, waiting=0))
    table_reads: BoundedSemaphore = field(
        default_factory=lambda: BoundedSemaphore("table history", at_once=4, waiting=60)
    )
