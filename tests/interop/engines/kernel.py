"""Delta Kernel (Java), in the JVM of Spark but not by Spark: it reads Parquet and the log with code of its own."""

import base64
import json
import struct
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.interop.engines.protocol import NotOfferedError, Predicate
from tests.interop.operations import Append, Operation
from tests.interop.table_case import KEY, Case
from tests.interop.values import Rows, delta_type, plain, plain_float

_SOURCE = Path(__file__).with_name("DeltaKernel.java")


def compile_kernel(spark: SparkSession) -> Any:
    """Compile the adapter's Java in Spark's JVM and return an object of it."""
    jvm = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)  # Static methods of interfaces.
    compiler.cook(_SOURCE.read_text())
    return (
        compiler.getClassLoader()
        .loadClass("DeltaKernel")
        .getConstructors()[0]
        .newInstance(spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 0))
    )


class KernelReader:
    """Delta Kernel as a reader; its predicates choose files only, so the rows are filtered here."""

    name = "Delta Kernel (Java)"

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def rows(self, location: Path, case: Case) -> Rows:
        found = json.loads(self._kernel.read(str(location), None, None, None, None))
        names = list(found["types"])
        order = sorted(range(len(names)), key=names.__getitem__)
        counts = Counter(tuple(_decoded(row[i]) for i in order) for row in found["rows"])
        return Rows(tuple(names[i] for i in order), tuple(found["types"][names[i]] for i in order), counts)

    def keys(self, location: Path, case: Case, predicate: Predicate) -> tuple[int, ...]:
        found = self._filtered(location, case, predicate)
        names = list(found["types"])
        wanted = plain(case.column(predicate.column).arrow, predicate.value)
        return tuple(
            sorted(
                row[names.index(KEY)]
                for row in found["rows"]
                if satisfies(_decoded(row[names.index(predicate.column)]), predicate.op, wanted)
            )
        )

    def files_read(self, location: Path, case: Case, predicate: Predicate) -> int:
        files: int = self._filtered(location, case, predicate)["files"]
        return files

    def _filtered(self, location: Path, case: Case, predicate: Predicate) -> Any:
        kind = delta_type(case.column(predicate.column).arrow)
        return json.loads(
            self._kernel.read(str(location), predicate.column, predicate.op, kind, _text(predicate.value))
        )


class KernelWriter:
    """Delta Kernel as a writer: it appends."""

    name = "Delta Kernel (Java)"
    offers = frozenset({Append.name})

    def __init__(self, kernel: Any, spark: SparkSession) -> None:
        self._kernel = kernel
        self._lists = spark._jvm.java.util.ArrayList

    def create(self, case: Case, location: Path) -> None:
        raise NotOfferedError("the laboratory only appends with it")

    def append(self, case: Case, location: Path, keys: tuple[int, ...]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            files, partitions = self._lists(), self._lists()
            for number, part in enumerate([(key,) for key in keys] if case.partition_by else [keys]):
                key, file = part[0], Path(folder) / f"{number}.parquet"
                pq.write_table(case.arrow(part), file)
                files.add(str(file))
                values = self._lists()
                for name in case.partition_by:
                    values.add(name)
                    values.add(delta_type(case.column(name).arrow))
                    value = case.python_row(key)[name]
                    values.add(None if value is None else _text(value))
                partitions.add(values)
            self._kernel.append(str(location), files, partitions)

    def perform(self, operation: Operation, case: Case, location: Path) -> None:
        if not isinstance(operation, Append):
            raise NotOfferedError("the laboratory only appends with it")
        self.append(case, location, tuple(operation.keys(case)))


def satisfies(value: Any, op: str, wanted: Any) -> bool:
    """Return whether a plain value satisfies a comparison, null never does; floats compare as numbers."""
    if value is None:
        return False
    if isinstance(value, str) and isinstance(wanted, str) and _is_float(value) and _is_float(wanted):
        value, wanted = float(value), float(wanted)
    return bool({"=": value == wanted, "<": value < wanted, ">": value > wanted, ">=": value >= wanted}[op])


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decoded(value: Any) -> Any:  # noqa: PLR0911 - one arm for each kind of value
    match value:
        case str() if value[0] == "s":
            return value[1:]
        case str() if value[0] == "b":
            return base64.b64decode(value[1:])
        case str() if value[0] == "d":
            return Decimal(value[1:])
        case str() if value[0] == "F":
            return plain_float(struct.unpack(">f", struct.pack(">i", int(value[1:])))[0])
        case str() if value[0] == "D":
            return plain_float(struct.unpack(">d", struct.pack(">q", int(value[1:])))[0])
        case list():
            return tuple(_decoded(item) for item in value)
        case {"struct": fields}:
            return tuple((name, _decoded(inner)) for name, inner in fields)
        case {"map": entries}:
            return tuple(sorted((_decoded(key), _decoded(inner)) for key, inner in entries))
        case _:
            return value
