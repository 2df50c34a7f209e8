"""The service's own state over the wire: one page for people and probes."""

from datetime import datetime

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class RedisStatus(ResponseModel):
    """The store, and whether a queue may be trusted to it."""

    reachable: bool = Field(description="Whether it answered.")
    name: str = Field(description="`redis` or `valkey`; empty if it did not answer.")
    version: str = Field(description="Its version.")
    aof_enabled: bool = Field(description="Whether the append-only file is on.")
    eviction_policy: str = Field(description="What it does when memory is full; only `noeviction` is safe.")
    used_memory_bytes: int = Field(description="Memory in use.")
    issues: tuple[str, ...] = Field(description="Why it is not safe, each with what to do; empty if it is.")


class Backlog(ResponseModel):
    """Tables that this decider was told to look at."""

    tables_waiting: int = Field(description="Tables that wait to be looked at, or are being looked at.")
    tables_retrying: int = Field(description="Tables whose last look failed for the moment; they are looked at again.")
    oldest_wait_s: float = Field(description="Seconds that the oldest of them has been waiting: this decider's lag.")


class QueueStatus(ResponseModel):
    """Jobs of all deciders."""

    depth: dict[str, int] = Field(description="Jobs per state.")
    oldest_wait_s: float = Field(description="Seconds that the oldest queued job has been waiting.")


class Savings(ResponseModel):
    """What the rewrites gained, and what they cost."""

    files_removed: int = Field(description="Files that there are fewer of.")
    bytes_rewritten: int = Field(description="Bytes read to remove them.")
    write_amplification: float | None = Field(
        description="Bytes rewritten per byte that writers added; null before the first commit was folded."
    )
    partitions_pruned_ratio: float | None = Field(
        description="Share of touched cells that needed no rewrite; null before the first commit was folded."
    )


class DefaultsInForce(ResponseModel):
    """The defaults that all deciders on this queue decide under: those of the one that started last."""

    version: str = Field(description="Short digest of the defaults in force.")
    own_version: str = Field(description="Digest of what this decider was started with.")
    in_sync: bool = Field(description="Whether they are the same; else another decider has started since.")


class DeciderStatus(ResponseModel):
    """The decider at a glance."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": "0.1.0",
                    "started_at": "2026-01-01T00:00:00Z",
                    "uptime_s": 50587.2,
                    "redis": {
                        "reachable": True,
                        "name": "valkey",
                        "version": "9.1.2",
                        "aof_enabled": True,
                        "eviction_policy": "noeviction",
                        "used_memory_bytes": 1933120,
                        "issues": [],
                    },
                    "tables": 12,
                    "tables_refused": 0,
                    "defaults": {"version": "5c1d0e7a", "own_version": "5c1d0e7a", "in_sync": True},
                    "backlog": {"tables_waiting": 0, "tables_retrying": 0, "oldest_wait_s": 0.0},
                    "queue": {
                        "depth": {"queued": 1, "delayed": 0, "leased": 1, "quarantined": 0},
                        "oldest_wait_s": 1.4,
                    },
                    "actors": {"working": 1},
                    "object_store_requests": {"get": 1288, "list": 12, "head": 0},
                    "funnel": {"commits": 640, "partitions_touched": 655, "pruned_by_levels": 570, "enqueued": 85},
                    "savings": {
                        "files_removed": 560,
                        "bytes_rewritten": 671088640,
                        "write_amplification": 1.05,
                        "partitions_pruned_ratio": 0.87,
                    },
                }
            ]
        },
    )

    version: str = Field(description="Release of this decider.")
    started_at: datetime = Field(description="When this process started.")
    uptime_s: float = Field(description="Seconds since then.")
    redis: RedisStatus = Field(description="The store.")
    tables: int | None = Field(description="Registered tables; null if the store did not answer.")
    tables_refused: int | None = Field(
        description="Those of them that are refused, unreadable or gone; null if the store did not answer."
    )
    defaults: DefaultsInForce = Field(description="The defaults for tables that say nothing.")
    backlog: Backlog = Field(description="Tables that wait for this decider.")
    queue: QueueStatus = Field(description="Jobs that wait for actors or run.")
    actors: dict[str, int] = Field(description="Actors by state: `working`, `idle`, `draining`, `drained`.")
    object_store_requests: dict[str, int] = Field(description="Requests to object stores by this process, by kind.")
    funnel: dict[str, int] = Field(description="From commits to rewrites, over all tables and deciders.")
    savings: Savings = Field(description="What it was good for.")


class Liveness(ResponseModel):
    """The process runs."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"status": "alive"}]})

    status: str = Field(description="Always `alive`.")


class Readiness(ResponseModel):
    """Whether calls can be served."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"status": "ready", "reasons": []}]})

    status: str = Field(description="`ready` or `not ready`.")
    reasons: tuple[str, ...] = Field(description="Why it is not; empty if it is.")
