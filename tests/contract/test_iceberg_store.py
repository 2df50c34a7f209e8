"""Copies of row groups ask a table's own file IO for no empty range, and a store that fails is no damaged file."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest
from shared.errors import RetryableError
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import CommitOrigin
from tests.support.iceberg_rest_lake import RestLake, rest_lake
from tests.support.steering import Steering

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
    pytest.mark.long("iceberg"),
]

PLACE = "catalog://lake/db/t"
STRICT_IO = """
package io.lakewright;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/** Answers as an object store does: no bytes are no range, and a client that is throttled raises no IOException. */
public final class StrictIO extends HadoopFileIO {
  private static final AtomicInteger READS = new AtomicInteger(-1); // Of Parquet files until one is throttled.

  /** Throttles one read, after so many that are answered. */
  public static void throttle(int after) {
    READS.set(after);
  }

  static void check(int length) {
    if (length == 0) {
      throw new IllegalArgumentException("416 Range Not Satisfiable");
    }
    if (READS.getAndDecrement() == 0) {
      throw new IllegalStateException("503 Slow Down");
    }
  }

  public InputFile newInputFile(String path, long length) {
    InputFile file = super.newInputFile(path, length);
    return path.endsWith(".parquet") ? new Checked(file) : file;
  }

  private static final class Checked implements InputFile {
    private final InputFile file;

    Checked(InputFile file) {
      this.file = file;
    }

    public long getLength() {
      return file.getLength();
    }

    public SeekableInputStream newStream() {
      return new Ranges(file.newStream());
    }

    public String location() {
      return file.location();
    }

    public boolean exists() {
      return file.exists();
    }
  }

  private static final class Ranges extends SeekableInputStream implements RangeReadable {
    private final SeekableInputStream in;

    Ranges(SeekableInputStream in) {
      this.in = in;
    }

    public long getPos() throws IOException {
      return in.getPos();
    }

    public void seek(long to) throws IOException {
      in.seek(to);
    }

    public int read() throws IOException {
      check(1);
      return in.read();
    }

    public int read(byte[] bytes, int offset, int length) throws IOException {
      check(length);
      return in.read(bytes, offset, length);
    }

    public void readFully(long position, byte[] bytes, int offset, int length) throws IOException {
      check(length);
      in.seek(position);
      IOUtil.readFully(in, bytes, offset, length);
    }

    public int readTail(byte[] bytes, int offset, int length) throws IOException {
      throw new UnsupportedOperationException();
    }

    public void close() throws IOException {
      in.close();
    }
  }
}
"""


class StrictStore:
    """A table of three files without indexes behind that file IO, and an engine that copies however small they are."""

    def __init__(self, spark: "SparkSession", lake: RestLake) -> None:
        from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
        from tests.support.forced_copies import FORCED_LIMITS

        lake.make(3)
        options = lake.options | {"jvm.io-impl": "io.lakewright.StrictIO"}
        self.engine = IcebergEngine(spark, IcebergEngineSettings({"lake": options}, copy_limits=FORCED_LIMITS))

    def throttle(self, *, after: int) -> None:
        self.engine._scala.resolve("io.lakewright.StrictIO").throttle(after)

    def rewrite(self) -> RewriteOutcome:
        files = self.engine.read_partition(PLACE, WHOLE_TABLE).files
        mark = CommitMetadata(CommitOrigin("job-1", 7), partition="{}", round=1, mode="full", started_ms=500).encode()
        group = FileGroup(WHOLE_TABLE, files, RewriteMode.FULL)
        return self.engine.rewrite(RewriteRequest(PLACE, (group,), mark), Steering())


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[RestLake]:
    with rest_lake(tmp_path) as running:
        yield running


@pytest.fixture
def strict(spark: "SparkSession", lake: RestLake, tmp_path: Path) -> StrictStore:
    from tests.support import java_sources

    (tmp_path / "StrictIO.java").write_text(STRICT_IO)
    java_sources.compile_sources(spark, [tmp_path / "StrictIO.java"], tmp_path / "classes")
    return StrictStore(spark, lake)


def ended(outcome: RewriteOutcome) -> list[Any]:
    return [(group.status, group.is_copied, group.encoded_because) for group in outcome.groups]


def test_files_without_indexes_are_copied_from_a_store_that_refuses_empty_ranges(
    strict: StrictStore, lake: RestLake
) -> None:
    rows = lake.ids()
    assert ended(strict.rewrite()) == [(GroupStatus.COMMITTED, True, "")]
    assert (lake.ids(), lake.files()) == (rows, 1)


@pytest.mark.parametrize("answered", [pytest.param(0, id="footers"), pytest.param(4, id="pages")])
def test_a_throttled_read_is_a_failure_of_the_moment_and_no_damaged_file(
    strict: StrictStore, lake: RestLake, answered: int
) -> None:
    rows = lake.ids()
    strict.throttle(after=answered)
    with pytest.raises(RetryableError, match="503 Slow Down"):
        strict.rewrite()
    assert (lake.ids(), lake.files(), lake.rewrites(), lake.data_files()) == (rows, 3, 0, 3)
    assert ended(strict.rewrite()) == [(GroupStatus.COMMITTED, True, "")]
    assert (lake.ids(), lake.files(), lake.rewrites()) == (rows, 1, 1)
