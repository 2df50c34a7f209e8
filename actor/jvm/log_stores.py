"""Log stores whose commits exclude each other between processes; Delta's own do not, on local files or on S3.

For `file:` Delta checks that the commit file is absent and then renames over it: a commit of another process in between
is replaced and its rows are lost without a trace. Ours (`ExclusiveLogStore.java`) creates the file's name by a hard
link, which fails if the name exists. For S3 Delta checks and puts; ours (`ConditionalPutLogStore.java`) lets S3 refuse
what exists. They are compiled inside the JVM (`java_sources`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from actor.jvm.java_sources import CLASSES, compile_sources, load_class
from shared.errors import PermanentError


@dataclass(frozen=True, slots=True)
class LogStore:
    """A log store of ours: its class, whose source lies beside this module, and the schemes whose commits it makes."""

    name: str
    schemes: tuple[str, ...]

    @property
    def class_name(self) -> str:
        """The full name of the class."""
        return f"io.lakewright.{self.name}"

    @property
    def configuration(self) -> Mapping[str, str]:
        """Setting that makes Delta use the store; Delta resolves it when the first log is opened."""
        return {f"spark.delta.logStore.{scheme}.impl": self.class_name for scheme in self.schemes}


EXCLUSIVE = LogStore("ExclusiveLogStore", ("file",))
CONDITIONAL_PUT = LogStore("ConditionalPutLogStore", ("s3", "s3a", "s3n"))


def install(spark: SparkSession, *stores: LogStore) -> None:
    """Compile the stores into the class path of this session's JVM; raises PermanentError if one cannot be loaded."""
    compile_sources(spark, (store.name for store in stores))
    for store in stores:
        try:
            load_class(spark, store.name)
        except Exception as error:
            raise PermanentError(
                f"the log store {store.class_name} cannot be loaded from {spark.conf.get(CLASSES)}: commits would not "
                "be safe between processes; check that the folder can be written"
            ) from error
