"""Starting Spark changes nothing of the process that it is started in."""

import signal
from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_what_ctrl_c_does_is_left_to_who_starts_spark(spark: Any) -> None:
    """PySpark's own handler cancels every job and raises at the first Ctrl-C, in place of a graceful stop."""
    assert not spark.sparkContext._jsc.sc().isStopped()
    handler = signal.getsignal(signal.SIGINT)
    assert not str(getattr(handler, "__module__", "")).startswith("pyspark"), handler
