"""Settings of an actor from its environment: names, units, defaults and reasons."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from actor.formats.parquet.copy_rules import CopyLimits
from actor.jvm.spark_options import parse_spark_options
from actor.odd_files import first_odd
from actor.slot_queue import DEFAULT_SHARE
from services import paths
from services.settings import (
    BACKGROUND_LOAD,
    DEFAULT_BACKGROUND_LOAD,
    GROUP,
    LOG_LEVEL,
    QUEUE,
    REDIS_URL,
    SECRET,
    EnvironmentReader,
    boolean,
    boundary,
    default_redis_url,
    format_options,
    host_name,
    log_level_name,
    number,
    parse_redis_url,
    store_options,
)
from shared.formats.options import FormatOptions
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location
from shared.paths.store_options import StoreOptions
from shared.policy import parsers
from shared.queue.keys import in_group
from shared.queue.limits import MAX_SHARED_JOBS
from shared.queue.model import Share

SLOTS = "LAKEWRIGHT_SLOTS"
"""Jobs that one actor runs at once. Default 2: while one job waits for the store or the driver, another computes."""

SHARED_JOBS = "LAKEWRIGHT_SHARED_JOBS"
"""Maximum number of jobs of one table that a slot claims together, to share a commit. Default 8: a commit costs as much
as merging a few small files, and a failure repeats the work of at most eight jobs. 1 disables sharing."""

SHARED_MIB = "LAKEWRIGHT_SHARED_MIB"
"""Maximum MiB that the jobs of a shared commit read in total. Default 128: about one full file, so that together they
occupy a slot no longer than one usual job. A larger job is claimed alone."""

LEASE_S = "LAKEWRIGHT_LEASE_S"
"""Seconds after which the job of a dead actor is given to another. Default 60: eleven missed heartbeats."""

MASTER = "LAKEWRIGHT_SPARK_MASTER"
"""Spark master. Default `local[*]`: the whole application in this process, on all cores of this machine."""

SPARK_OPTIONS = "LAKEWRIGHT_SPARK_OPTIONS"
"""JSON object of further options of Spark, such as `{"spark.executor.memory": "4g", "spark.cores.max": 8}`. Default:
none; the actor's own options are refused. On a cluster, executors are allocated dynamically unless this says
otherwise (docs/deploy.md)."""

PARALLEL_GROUPS = "LAKEWRIGHT_PARALLEL_GROUPS"
"""File groups of one job that are written at once. Default 2: one group keeps one core busy. On a Spark cluster, its
cores divided by LAKEWRIGHT_SLOTS; at most 8, because so many groups share a commit."""

CORES = "LAKEWRIGHT_CORES"
"""Cores that this actor occupies, with its Spark executors; core-seconds are counted by them, and its slots share them
evenly. Default: all of this machine, as Spark uses without a cluster."""

SELF_TEST_LOCATION = "LAKEWRIGHT_SELF_TEST_LOCATION"
"""Folder or location in an object store for the small table on which each actor tests the rewrite when it starts.
Default: the actor's own disk. Set it where Spark's executors run on other machines: they have to write there, too."""

MEMORY = "LAKEWRIGHT_DRIVER_MEMORY"
"""Heap of the driver, in Spark's notation. Default `1g`: enough for two rewrites of a 128 MiB target at once."""

NAME = "LAKEWRIGHT_ACTOR_NAME"
"""Name of this actor. Default: host name and process id."""

ALLOW_S3 = "LAKEWRIGHT_ALLOW_S3"
"""`true` if no writer of tables on S3 uses Delta's default log store there (docs/object-stores.md). Default `false`:
that log store overwrites commits of other writers, and a lost commit is worse than small files. Needs 14 MB of jars."""

RESERVED_DISK = "LAKEWRIGHT_RESERVED_DISK_MIB"
"""MiB that jobs which write files leave free on the disk of a local table. Default 256: a full disk would stop the
table's own writers, which is worse than files left small."""

MIN_ROW_GROUP = "LAKEWRIGHT_MIN_ROW_GROUP_MIB"
"""MiB that the row groups of a final file have on average if they are copied; smaller ones are encoded. Default 4: the
smallest size from which no query of three readers took more than 1.05 times what it takes at 32 MiB, with 7
columns. 0: any size."""

MIN_COLUMN_CHUNK = "LAKEWRIGHT_MIN_COLUMN_CHUNK_KIB"
"""KiB per leaf column that the row groups of a final file have on average if they are copied; smaller ones are encoded.
Default 128, which is stricter than LAKEWRIGHT_MIN_ROW_GROUP_MIB from 33 columns on: readers pay for each chunk of a
column; with 70 columns and chunks of 58 KiB, reading two columns took up to 1.87 times the CPU time. 0: only
LAKEWRIGHT_MIN_ROW_GROUP_MIB counts."""

MIN_ROW_GROUP_WITH_VECTORS = "LAKEWRIGHT_MIN_ROW_GROUP_MIB_WITH_VECTORS"
"""MiB that several row groups of a file have on average if they are copied on a Delta table with deletion vectors;
smaller ones are merged by column. Default 128, as Spark cuts them: delta-rs up to 1.6.3 applies vectors to other rows
of files with several row groups. 0: any size, for tables that no such engine reads."""


@dataclass(frozen=True, slots=True)
class ActorSettings:
    """An actor's settings; see the variables above for units and reasons."""

    redis_url: str
    queue: str
    name: str
    slots: int
    share: Share
    lease_s: float
    master: str
    driver_memory: str
    allow_s3: bool
    reserved_disk_bytes: int
    copy_limits: CopyLimits
    store_options: StoreOptions
    scratch_parent: Path
    ivy_dir: Path
    ready_file: Path
    log_level: str
    spark_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    parallel_groups: int = 2
    cores: float = 1.0
    background_load: float = 1.0
    self_test_location: str = ""
    boundary: Boundary = field(default_factory=Boundary)
    formats: FormatOptions = field(default_factory=FormatOptions)


def _queue(read: EnvironmentReader) -> str:
    """Return the name of the queue, or of the group of it, whose jobs the actor runs."""
    queue = read(QUEUE, parsers.group, "default")
    return in_group(queue, read(GROUP, parsers.group, ""))


def actor_settings(environment: Mapping[str, str] = os.environ) -> ActorSettings:
    """Read the actor's settings; raises InvalidInput that names the variable and what it accepts."""
    read = EnvironmentReader(environment, secret=SECRET | {SPARK_OPTIONS})
    no_options: dict[str, str] = {}
    return ActorSettings(
        redis_url=read(REDIS_URL, parse_redis_url, default_redis_url(environment)),
        queue=_queue(read),
        name=read(NAME, str, f"{host_name()}-{os.getpid()}"),
        slots=read(SLOTS, number(int, 1, 64), 2),
        share=Share(
            read(SHARED_JOBS, number(int, 1, MAX_SHARED_JOBS), DEFAULT_SHARE.jobs),
            read(SHARED_MIB, number(int, 0, 1 << 20), DEFAULT_SHARE.bytes >> 20) << 20,
        ),
        lease_s=read(LEASE_S, number(float, 2, 3600), 60.0),
        master=read(MASTER, str, "local[*]"),
        driver_memory=read(MEMORY, str, "1g"),
        allow_s3=allows_s3(environment),
        reserved_disk_bytes=read(RESERVED_DISK, number(int, 0, 1 << 30), 256) << 20,
        copy_limits=CopyLimits(
            read(MIN_ROW_GROUP, number(int, 0, 1 << 10), 4) << 20,
            read(MIN_COLUMN_CHUNK, number(int, 0, 1 << 20), 128) << 10,
            read(MIN_ROW_GROUP_WITH_VECTORS, number(int, 0, 1 << 10), 128) << 20,
        ),
        store_options=store_options(environment),
        scratch_parent=paths.data_dir(environment) / "spark",
        ivy_dir=paths.ivy_dir(environment),
        ready_file=paths.ready_file(environment),
        log_level=read(LOG_LEVEL, log_level_name, "info"),
        spark_options=read(SPARK_OPTIONS, parse_spark_options, no_options),
        parallel_groups=read(PARALLEL_GROUPS, number(int, 1, 8), 2),
        cores=read(CORES, number(float, 0.01, 100_000), float(os.cpu_count() or 1)),
        background_load=read(BACKGROUND_LOAD, number(float, 0, 1), DEFAULT_BACKGROUND_LOAD),
        self_test_location=read(SELF_TEST_LOCATION, canonical_location, ""),
        boundary=replace(boundary(environment), first_odd=first_odd),
        formats=format_options(environment),
    )


def allows_s3(environment: Mapping[str, str]) -> bool:
    """Return whether tables on S3 are allowed, which needs more jars; raises InvalidInput for what is no answer."""
    return EnvironmentReader(environment)(ALLOW_S3, boolean, default=False)
