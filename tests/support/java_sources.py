"""Java sources of tests, compiled inside a running JVM by the compiler that Spark brings for its own generated code.

It knows no lambdas, and takes what a generic method returns for an Object.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.jvm.scala import Scala


def compile_sources(spark: SparkSession, sources: Iterable[Path], folder: Path) -> None:
    """Compile sources, each of which may use those before it, into a folder that joins the class path of the JVM."""
    scala = Scala(spark)
    folder.mkdir(parents=True, exist_ok=True)
    loader = class_loader(scala)
    loader.addURL(scala.resolve("java.io.File")(str(folder.resolve())).toURI().toURL())
    for source in sources:
        compiler = scala.resolve("org.codehaus.janino.SimpleCompiler")()
        compiler.setParentClassLoader(loader)
        compiler.cook(source.read_text("utf-8"))
        bytecodes = compiler.getBytecodes()
        for compiled in list(bytecodes):
            target = folder.joinpath(*compiled.split(".")).with_suffix(".class")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(bytes(bytecodes[compiled]))


def class_loader(scala: Scala) -> Any:
    """Return the loader of the application's classes, whose class path can grow."""
    return scala.resolve("org.apache.spark.util.Utils").getContextOrSparkClassLoader()
