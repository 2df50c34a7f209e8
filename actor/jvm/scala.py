"""The bridge into the JVM: every private name of PySpark and every Scala idiom is here, so that no other file guesses.

py4j resolves a dotted name with one round trip per part, so classes are resolved once; a call on an object that is
already held costs well under a millisecond. In PySpark 4 each Python thread has its own JVM thread (pinned mode),
which is why "the active session" has to be set per thread (see `sessions`).
"""

import json
from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_DELTA = "org.apache.spark.sql.delta"
_MOST_OF = 10
"""Items of a list that Java makes of its arguments."""


def jvm_session(session: SparkSession) -> Any:
    """Return the JVM's session behind a Python one."""
    return session._jsparkSession  # noqa: SLF001 - there is no public way to the JVM session


def jvm_context(session: SparkSession) -> Any:
    """Return the Scala SparkContext."""
    return jvm_session(session).sparkContext()


class JavaStatics:
    """The static members of a Java class of ours, each resolved once: py4j asks the JVM for each mention of one."""

    def __init__(self, scala: "Scala", name: str) -> None:
        self._scala = scala
        self._name = name

    def __getattr__(self, member: str) -> Any:
        found = self._scala.resolve(f"io.lakewright.{self._name}.{member}")
        setattr(self, member, found)
        return found


class Scala:
    """Handles to the JVM's classes and the conversions between Python and Scala collections."""

    def __init__(self, session: SparkSession) -> None:
        self._jvm: Any = session._jvm  # noqa: SLF001 - the gateway is the point of this class
        self._gateway: Any = session.sparkContext._gateway  # noqa: SLF001
        self._resolved: dict[str, Any] = {}
        self._hadoop_confs: WeakKeyDictionary[SparkSession, Any] = WeakKeyDictionary()
        self._python_utils = self.resolve("org.apache.spark.api.python.PythonUtils")
        self._array_list = self.resolve("java.util.ArrayList")
        self._hash_map = self.resolve("java.util.HashMap")
        self._some = self.resolve("scala.Some")
        self.none = self.resolve("scala.Option").empty()

    def hadoop_conf(self, session: SparkSession) -> Any:
        """Return Hadoop's configuration with a session's settings; made once, which takes a millisecond."""
        made = self._hadoop_confs.get(session)
        if made is None:
            made = self._hadoop_confs[session] = jvm_session(session).sessionState().newHadoopConf()
        return made

    def resolve(self, name: str) -> Any:
        """Return the class of this full name, or the static member that the last part names."""
        if name not in self._resolved:
            self._resolved[name] = reduce(getattr, name.split("."), self._jvm)
        return self._resolved[name]

    def module(self, name: str) -> Any:
        """Return a Scala `object` by its full name without the trailing `$`."""
        return getattr(self.resolve(name + "$"), "MODULE$")

    def some(self, value: object) -> Any:
        """Wrap a value as Scala's `Some`."""
        return self._some(value)

    def java_list(self, items: Iterable[object]) -> Any:
        """Return a Java list of items: texts and numbers in one call, few objects of the JVM too, more one by one."""
        given = list(items)
        if all(isinstance(item, str | int) for item in given):
            return self._mapper.readValue(json.dumps(given), self._list_class)
        if len(given) <= _MOST_OF and None not in given:
            return self.resolve("java.util.List.of")(*given)
        copy = self._array_list()
        for item in given:
            copy.add(item)
        return copy

    def seq(self, items: Iterable[object] = ()) -> Any:
        """Copy items into a Scala `Seq`."""
        return self._python_utils.toSeq(self.java_list(items))

    def map(self, entries: Mapping[str, object] | None = None) -> Any:
        """Copy entries into an immutable Scala `Map`."""
        copy = self._hash_map()
        for key, value in (entries or {}).items():
            copy.put(key, value)
        return self._python_utils.toScalaMap(copy)

    @cached_property
    def session_settings(self) -> JavaStatics:
        """Our class that sets and restores settings of a session (`SessionSettings.java`)."""
        return JavaStatics(self, "spark.SessionSettings")

    @cached_property
    def local_tasks(self) -> JavaStatics:
        """Our class that runs tasks in a local driver (`LocalTasks.java`)."""
        return JavaStatics(self, "spark.LocalTasks")

    @property
    def row_sample(self) -> Any:
        """Our class of a sample of rows (`RowSample.java`)."""
        return self.resolve("io.lakewright.parquet.RowSample")

    @cached_property
    def cut_tree(self) -> JavaStatics:
        """Our class of rows' ways along cuts (`CutTree.java`)."""
        return JavaStatics(self, "parquet.CutTree")

    @property
    def path(self) -> Any:
        """Class `org.apache.hadoop.fs.Path`."""
        return self.resolve("org.apache.hadoop.fs.Path")

    @cached_property
    def bound_thread(self) -> JavaStatics:
        """Our class that sets what Spark keeps for each thread (`BoundThread.java`)."""
        return JavaStatics(self, "spark.BoundThread")

    @cached_property
    def _mapper(self) -> Any:
        return self.module(f"{_DELTA}.util.JsonUtils").mapper()

    @cached_property
    def _list_class(self) -> Any:
        return self.resolve("java.lang.Class").forName("java.util.ArrayList")

    def items(self, listed: Any) -> list[Any]:
        """Return the items of a Java list: py4j's iteration ends by an exception, which costs seventy round trips."""
        return [listed.get(number) for number in range(listed.size())]

    def rows(self, frame: Any) -> list[Any]:
        """Return the rows of the JVM's frame, nulls left out, in one round trip however many they are."""
        texts = self.to_json(frame.toJSON().collectAsList())
        return [json.loads(text) for text in json.loads(texts)]

    def to_json(self, value: object) -> str:
        """Serialize a JVM value with Delta's own mapper, in one round trip whatever its size."""
        return str(self._mapper.writeValueAsString(value))
