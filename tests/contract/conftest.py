"""One Spark and one engine for all contract tests of a session: starting them costs more than any test."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # Tests of other contracts must run where PySpark is not installed.
    from pyspark.sql import SparkSession

    from actor.formats.delta.engine import DeltaEngine
    from actor.proofread.proofreader import Proofreader
    from tests.support.delta_lab import DeltaLab
    from tests.support.iceberg_lab import IcebergLab


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Spark with Delta, as an actor starts it."""
    pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")
    from tests.support.spark_session import start_spark, stop_spark

    session = start_spark(tmp_path_factory.mktemp("spark"))
    yield session
    stop_spark(session)


@pytest.fixture(scope="module")
def one_overload(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Calls into the JVM that Py4J could take for either of two overloads fail, as they otherwise do by chance."""
    from tests.support.one_overload import one_overload

    with one_overload(spark, tmp_path_factory.mktemp("classes")):
        yield


@pytest.fixture(scope="session")
def engine(spark: "SparkSession", proofreader: "Proofreader") -> "Iterator[DeltaEngine]":
    """The exact engine, one for all tests as in an actor.

    With LAKEWRIGHT_TEST_ROW_GROUP_COPY=forced it copies row groups wherever that is exact, however small they are.
    """
    from tests.support.forced_copies import VARIABLE, CountingEngine, is_forced

    counting = CountingEngine(spark, proofreader=proofreader)
    yield counting
    if is_forced():
        print(f"\n{VARIABLE}=forced, groups of the shared engine: {dict(sorted(counting.ways.items()))}")


@pytest.fixture
def lab(spark: "SparkSession", engine: "DeltaEngine", tmp_path: Path) -> "DeltaLab":
    """The exact engine and a place for tables."""
    from tests.support.delta_lab import DeltaLab

    return DeltaLab(spark, engine, tmp_path)


@pytest.fixture(scope="session")
def proofreader() -> "Iterator[Proofreader]":
    """The processes that compare outputs with inputs, one set for all engines as in an actor."""
    from actor.proofread.proofreader import Proofreader

    made = Proofreader()
    yield made
    made.close()


@pytest.fixture
def ice(spark: "SparkSession", tmp_path: Path, proofreader: "Proofreader") -> "IcebergLab":
    """A warehouse of Iceberg tables of its own, and an engine for it."""
    from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
    from tests.support.iceberg_lab import IcebergLab

    engine = IcebergEngine(spark, IcebergEngineSettings(reads_folders=True), proofreader)
    return IcebergLab(spark, engine, tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves the sockets of `collect` and of ended threads to the garbage collector: that is not our leak."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
