package io.lakewright.parquet;

import java.io.IOException;
import org.apache.parquet.hadoop.util.HadoopStreams;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.SeekableInputStream;

/** A file whose size is known, which spares asking the store for it. */
final class KnownInput implements InputFile {
  private final ParquetTask task;
  private final String file;
  private final long size;

  KnownInput(ParquetTask task, String file, long size) {
    this.task = task;
    this.file = file;
    this.size = size;
  }

  public long getLength() {
    return size;
  }

  public SeekableInputStream newStream() throws IOException {
    return HadoopStreams.wrap(task.open(file, size));
  }
}
