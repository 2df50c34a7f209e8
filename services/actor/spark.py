"""Spark as an actor's settings request it, for the service and for the command that works alone alike."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from actor.formats.registry import EngineOptions
from actor.jvm.java import JavaHome, collector_options
from actor.jvm.s3a import hadoop_settings
from actor.jvm.spark import SparkSettings, build_session
from services.actor.settings import ActorSettings


def start_spark(settings: ActorSettings, *, scratch: Path, java: JavaHome) -> SparkSession:
    """Start the application with its working files in `scratch`; raises PermanentError if the JVM does not start."""
    return build_session(
        SparkSettings(
            work_dir=scratch,
            ivy_dir=settings.ivy_dir,
            master=settings.master,
            driver_memory=settings.driver_memory,
            collector=collector_options(os.environ),
            iceberg=settings.formats.has_iceberg,
            s3=hadoop_settings(settings.store_options) if settings.allow_s3 else None,
            extra=settings.spark_options,
        ),
        java_home=java.path,
    )


def engine_options(settings: ActorSettings) -> EngineOptions:
    """Return what the engines may do under these settings."""
    return EngineOptions(
        boundary=settings.boundary,
        allow_s3=settings.allow_s3,
        reserved_disk_bytes=settings.reserved_disk_bytes,
        copy_limits=settings.copy_limits,
        formats=settings.formats,
        parallel_groups=settings.parallel_groups,
        stores=settings.store_options,
    )
