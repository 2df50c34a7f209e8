"""Log stores whose commits exclude each other between processes; Delta's own do not, on local files or on S3.

For `file:` Delta checks that the commit file is absent and then renames over it: a commit of another process in between
is replaced and its rows are lost without a trace. Ours (`ExclusiveLogStore.java`) creates the file's name by a hard
link, which fails if the name exists. For S3 Delta checks and puts; ours (`ConditionalPutLogStore.java`) lets S3 refuse
what exists. They are compiled inside the JVM by the compiler that Spark brings for its own generated code, so no binary
has to be trusted and no JDK installed. Their folder joins the class path of the running JVM: named before the start it
would forbid the class archive, which allows jars only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pyspark.sql import SparkSession

from actor.jvm.scala import Scala
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


def classes_dir(work_dir: Path) -> Path:
    """Return the folder that the compiled stores are kept in."""
    return work_dir / "classes"


def install(spark: SparkSession, work_dir: Path, *stores: LogStore) -> None:
    """Compile the stores into the class path of this session's JVM; raises PermanentError if one cannot be loaded."""
    scala = Scala(spark)
    loader = scala.resolve("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
    for store in stores:
        compiler = scala.resolve("org.codehaus.janino.SimpleCompiler")()
        compiler.setParentClassLoader(loader)
        compiler.cook(files("actor.jvm").joinpath(f"{store.name}.java").read_text("utf-8"))
        bytecodes = compiler.getBytecodes()
        for name in list(bytecodes):
            target = classes_dir(work_dir).joinpath(*name.split(".")).with_suffix(".class")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(bytes(bytecodes[name]))
    loader.addURL(scala.resolve("java.io.File")(str(classes_dir(work_dir).resolve())).toURI().toURL())
    for store in stores:
        try:
            scala.resolve("java.lang.Class").forName(store.class_name, True, loader)  # noqa: FBT003 - Java's flag
        except Exception as error:
            raise PermanentError(
                f"the log store {store.class_name} cannot be loaded from {classes_dir(work_dir)}: commits would not be "
                "safe between processes; check that the folder can be written"
            ) from error
