"""An actor whose JVM dies at its first run, with the files written: killed from outside, or out of memory for real."""

import os
import signal
import sys

from pyspark import SparkContext

from actor.worker import ProgressHook
from services.actor.__main__ import main
from shared.queue.model import Claim

TOO_MANY = 2**28
"""Longs: 2 GiB, which no heap of ours has."""


def die(how: str) -> ProgressHook:
    def reached(_claim: Claim, at: str) -> None:
        if at != "files_written":
            return
        gateway = SparkContext._active_spark_context._gateway
        if how == "oom":
            gateway.new_array(gateway.jvm.long, TOO_MANY)
        else:
            os.kill(gateway.proc.pid, signal.SIGKILL)

    return reached


if __name__ == "__main__":
    sys.exit(main(os.environ, reached=die(sys.argv[1])))
