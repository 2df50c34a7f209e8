"""Schemas of service status and probes."""

from datetime import datetime

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class RedisStatus(ResponseModel):
    """Redis server, and whether it is configured for durable queues."""

    reachable: bool = Field(description="Whether Redis responds.")
    name: str = Field(description="`redis` or `valkey`; empty if unreachable.")
    version: str = Field(description="Server version.")
    aof_enabled: bool = Field(description="Whether the append-only file is enabled.")
    eviction_policy: str = Field(description="Eviction policy; must be `noeviction`.")
    used_memory_bytes: int = Field(description="Memory in use in bytes.")
    issues: tuple[str, ...] = Field(description="Configuration issues with remedies; empty if none.")


class SavedRegistryStatus(ResponseModel):
    """Registry that is saved outside of Redis (`LAKEWRIGHT_STATE`), as this decider knows it."""

    location: str = Field(description="Folder or object store location.")
    generation: int = Field(description="Newest generation that this decider read or wrote; 0 if none.")
    tables: int = Field(description="Number of tables in it.")
    saved_at: datetime | None = Field(
        description="When this decider last verified that everything in Redis is saved; null if never."
    )
    error: str = Field(description="Why the last attempt failed; empty if it succeeded.")
    damaged: tuple[str, ...] = Field(description="Newer generations that are damaged and not used, with the reason.")


class Backlog(ResponseModel):
    """Tables queued for a refresh in this decider."""

    tables_waiting: int = Field(description="Number of tables queued or being refreshed.")
    tables_retrying: int = Field(description="Number of tables whose refresh failed and is retried.")
    oldest_wait_s: float = Field(description="Wait of the oldest queued table in seconds.")


class QueueStatus(ResponseModel):
    """Jobs of all deciders."""

    depth: dict[str, int] = Field(description="Number of jobs by state.")
    oldest_wait_s: float = Field(description="Wait of the oldest queued job in seconds.")


class Savings(ResponseModel):
    """Benefit of the rewrites, and their cost."""

    files_removed: int = Field(description="Decrease of the file count.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")
    write_amplification: float | None = Field(
        description="Bytes rewritten per byte ingested; null before the first commit."
    )
    partitions_pruned_ratio: float | None = Field(
        description="Share of touched partitions that needed no rewrite; null before the first commit."
    )


class TablesFileView(ResponseModel):
    """Tables file (`LAKEWRIGHT_TABLES_FILE`), as this decider knows it."""

    path: str = Field(description="Path.")
    tables: int = Field(description="Number of tables that the file in force declares.")
    applied_at: datetime | None = Field(description="When it was last compared with the registry; null if never.")
    error: str = Field(
        description="Why the file as it is now is refused, with line and column; the last good content stays in force."
    )
    problems: tuple[str, ...] = Field(description="Entries that could not be applied.")


class DefaultsInForce(ResponseModel):
    """Default policy shared by all deciders of the queue: that of the decider that started last."""

    version: str = Field(description="Digest of the defaults in effect.")
    own_version: str = Field(description="Digest of this decider's configured defaults.")
    in_sync: bool = Field(description="Whether both digests are equal.")


class DeciderStatus(ResponseModel):
    """Status of the decider."""

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
                    "registry": {
                        "location": "s3://state/lakewright",
                        "generation": 31,
                        "tables": 12,
                        "saved_at": "2026-01-01T14:03:00Z",
                        "error": "",
                        "damaged": [],
                    },
                    "tables_file": {
                        "path": "/etc/lakewright/tables.yaml",
                        "tables": 4,
                        "applied_at": "2026-01-01T14:03:00Z",
                        "error": "",
                        "problems": [],
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
    started_at: datetime = Field(description="Start time.")
    uptime_s: float = Field(description="Uptime in seconds.")
    redis: RedisStatus = Field(description="Redis.")
    registry: SavedRegistryStatus | None = Field(description="Saved registry; null without `LAKEWRIGHT_STATE`.")
    tables_file: TablesFileView | None = Field(description="Tables file; null without `LAKEWRIGHT_TABLES_FILE`.")
    tables: int | None = Field(description="Number of registered tables; null if Redis is unreachable.")
    tables_refused: int | None = Field(
        description="Number of tables that are refused, unreadable or missing; null if Redis is unreachable."
    )
    defaults: DefaultsInForce = Field(description="Default policy.")
    backlog: Backlog = Field(description="Refresh queue of this decider.")
    queue: QueueStatus = Field(description="Job queue.")
    actors: dict[str, int] = Field(description="Number of actors by state: `working`, `idle`, `draining`, `drained`.")
    object_store_requests: dict[str, int] = Field(description="Object store requests of this process, by kind.")
    funnel: dict[str, int] = Field(description="Counts from commits to rewrites, over all tables and deciders.")
    savings: Savings = Field(description="Benefit and cost of all rewrites.")


class Liveness(ResponseModel):
    """Liveness of the process."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"status": "alive"}]})

    status: str = Field(description="Always `alive`.")


class Readiness(ResponseModel):
    """Readiness to serve requests."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"status": "ready", "reasons": []}]})

    status: str = Field(description="`ready` or `not ready`.")
    reasons: tuple[str, ...] = Field(description="Reasons for not being ready; empty if ready.")
