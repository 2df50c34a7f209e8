"""The life of an engine's JVM: whether it answers, how it ends, and how a job's work in it is canceled.

Every engine has this part, whatever its format.
"""

from pyspark.sql import SparkSession

from actor.jvm.autopsy import Autopsy
from actor.jvm.scala import Scala, jvm_context
from actor.jvm.sessions import Sessions
from actor.jvm.spark import jvm_process
from actor.ports import EngineDeath
from actor.proofread.proofreader import Proofreader


class JvmEngine:
    """Base of the engines on one Spark application, reached by `scala`; `secrets` are removed from what it printed.

    `proofreader` compares what they write with what they read; one may serve all engines of an actor.
    """

    def __init__(
        self, spark: SparkSession, scala: Scala, *, secrets: tuple[str, ...], proofreader: Proofreader | None = None
    ) -> None:
        self.proofreader = proofreader or Proofreader()
        self._spark = spark
        self._sessions = Sessions(scala, spark)
        self._jvm = jvm_process(spark, secrets=secrets)
        self._autopsy = Autopsy(self._jvm)
        self._context = jvm_context(spark)

    def is_alive(self) -> bool:
        """Ask the JVM whether its Spark still runs."""
        if self._jvm.process.poll() is not None:
            return False
        try:
            return not self._context.isStopped()
        except Exception:  # noqa: BLE001 - whatever keeps the JVM from answering, it does not answer
            return False

    def terminate(self) -> EngineDeath | None:
        """End the JVM if it has not ended, and return the cause of its end; None if it cannot be ended."""
        return self._autopsy.perform()

    def cancel(self, job: str) -> None:
        """Cancel the Spark jobs that run for this job; its rewrite then fails with a RetryableError."""
        self._sessions.cancel(job)
        self.proofreader.cancel(job)
