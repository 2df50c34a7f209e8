"""Log stores whose commits exclude each other between processes; Delta's own do not, on local files or on S3.

For `file:` Delta checks that the commit file is absent and then renames over it: a commit of another process in between
is replaced and its rows are lost without a trace. Ours (`ExclusiveLogStore.java`) creates the file's name by a hard
link, which fails if the name exists. For S3 Delta checks and puts; ours (`ConditionalPutLogStore.java`) lets S3 refuse
what exists. Where a store cannot be loaded, Delta opens no log.
"""

from collections.abc import Mapping


def _of(store: str, *schemes: str) -> Mapping[str, str]:
    """Return the settings that make Delta use a store of ours for the logs of some schemes."""
    return {f"spark.delta.logStore.{scheme}.impl": f"io.lakewright.delta.{store}" for scheme in schemes}


EXCLUSIVE = _of("ExclusiveLogStore", "file")
"""Settings for tables in local folders."""

CONDITIONAL_PUT = _of("ConditionalPutLogStore", "s3", "s3a", "s3n")
"""Settings for tables on S3."""
