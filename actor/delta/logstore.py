"""Commits on local and mounted file systems are made exclusive between processes, which Delta's own are not.

For `file:` Delta checks that the commit file is absent and then renames over it: a commit of another process in
between is replaced and its rows are lost without a trace. Ours (`ExclusiveLogStore.java`) creates the file's name by
a hard link, which fails if the name exists. It is compiled inside the JVM by the compiler that Spark brings for its
own generated code, so there is no binary to trust and no JDK to install. Its folder joins the class path of the running
JVM: named before the start it would forbid the class archive, which allows jars only.
"""

from importlib.resources import files
from pathlib import Path

from pyspark.sql import SparkSession

from actor.delta.scala import Scala
from shared.errors import PermanentError

CLASS_NAME = "io.lakewright.ExclusiveLogStore"
CONFIGURATION = {"spark.delta.logStore.file.impl": CLASS_NAME}
"""What makes Delta use the store for `file:`; it is looked up when the first log is opened."""


def classes_dir(work_dir: Path) -> Path:
    """Return the folder that the compiled store is kept in."""
    return work_dir / "classes"


def install(spark: SparkSession, work_dir: Path) -> None:
    """Compile the store into the class path of this session's JVM; raises PermanentError if it cannot be loaded."""
    scala = Scala(spark)
    compiler = scala.resolve("org.codehaus.janino.SimpleCompiler")()
    loader = scala.resolve("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
    compiler.setParentClassLoader(loader)
    compiler.cook(files("actor.delta").joinpath("ExclusiveLogStore.java").read_text("utf-8"))
    bytecodes = compiler.getBytecodes()
    for name in list(bytecodes):
        target = classes_dir(work_dir).joinpath(*name.split(".")).with_suffix(".class")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bytes(bytecodes[name]))
    loader.addURL(scala.resolve("java.io.File")(str(classes_dir(work_dir).resolve())).toURI().toURL())
    try:
        scala.resolve("java.lang.Class").forName(CLASS_NAME, True, loader)  # noqa: FBT003 - Java has no keywords
    except Exception as error:
        raise PermanentError(
            f"the log store {CLASS_NAME} cannot be loaded from {classes_dir(work_dir)}: commits to local tables would "
            "not be safe between processes; check that the folder can be written"
        ) from error
