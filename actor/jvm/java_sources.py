"""Java sources of ours are compiled inside the JVM, by the compiler that Spark brings for its own generated code.

So there is no binary to trust and no JDK to install. The folder of the classes joins the class path of the running JVM:
named before the start it would forbid the class archive, which allows jars only. The executors of a cluster are sent a
jar of the classes that their tasks need.
"""

import zipfile
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.jvm.scala import Scala, jvm_context

CLASSES = "spark.lakewright.classes"
"""Our own setting: the folder that the compiled classes of an application are kept in."""

_PACKAGE = "io.lakewright"


def classes_dir(work_dir: Path) -> Path:
    """Return the folder that the compiled classes are kept in."""
    return work_dir / "classes"


def compile_sources(spark: SparkSession, names: Iterable[str]) -> list[Path]:
    """Compile sources that lie beside this module into the class path of the JVM, and return the class files.

    A source may use those before it.
    """
    scala = Scala(spark)
    folder = Path(str(spark.conf.get(CLASSES)))
    folder.mkdir(parents=True, exist_ok=True)
    loader = class_loader(scala)
    loader.addURL(scala.resolve("java.io.File")(str(folder.resolve())).toURI().toURL())
    written = []
    for name in names:
        compiler = scala.resolve("org.codehaus.janino.SimpleCompiler")()
        compiler.setParentClassLoader(loader)
        compiler.cook(files("actor.jvm").joinpath(f"{name}.java").read_text("utf-8"))
        bytecodes = compiler.getBytecodes()
        for compiled in list(bytecodes):
            target = folder.joinpath(*compiled.split(".")).with_suffix(".class")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(bytes(bytecodes[compiled]))
            written.append(target)
    return written


def load_class(spark: SparkSession, name: str) -> Any:
    """Return a compiled class of ours as Java's `Class`; raises what Java raises if it cannot be loaded."""
    scala = Scala(spark)
    return scala.resolve("java.lang.Class").forName(f"{_PACKAGE}.{name}", True, class_loader(scala))  # noqa: FBT003


def ship(spark: SparkSession, compiled: Sequence[Path], jar_name: str) -> None:
    """Send compiled classes to the executors; nothing is to be done where they are this JVM."""
    context = jvm_context(spark)
    if context.isLocal():
        return
    folder = Path(str(spark.conf.get(CLASSES)))
    jar = folder.parent / jar_name
    with zipfile.ZipFile(jar, "w") as archive:
        for file in compiled:
            archive.write(file, str(file.relative_to(folder)))
    context.addJar(str(jar.resolve()))


def class_loader(scala: Scala) -> Any:
    """Return the loader of the application's classes, whose class path can grow."""
    return scala.resolve("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
