package io.lakewright.delta;

import io.delta.kernel.defaults.engine.fileio.OutputFile;
import io.delta.kernel.defaults.engine.fileio.PositionOutputStream;
import io.delta.kernel.defaults.engine.hadoopio.HadoopFileIO;
import io.delta.kernel.utils.CloseableIterator;
import io.delta.kernel.utils.FileStatus;
import java.io.ByteArrayOutputStream;
import org.apache.hadoop.conf.Configuration;

/**
 * What Delta's Kernel writes into memory instead of a file. Its own atomic file gets its name when it is closed, also
 * after a failure in the middle: a full disk would leave half a checkpoint.
 */
public final class MemoryFile extends HadoopFileIO {
  private final ByteArrayOutputStream written = new ByteArrayOutputStream();

  public MemoryFile(Configuration configuration) {
    super(configuration);
  }

  /** Returns what was written. */
  public byte[] bytes() {
    return written.toByteArray();
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return new Output(path, written);
  }

  @Override
  public FileStatus getFileStatus(String path) {
    return FileStatus.of(path, written.size(), 0);
  }

  private static final class Output implements OutputFile {
    private final String path;
    private final ByteArrayOutputStream target;

    Output(String path, ByteArrayOutputStream target) {
      this.path = path;
      this.target = target;
    }

    public String path() {
      return path;
    }

    public PositionOutputStream create(boolean putIfAbsent) {
      return new Stream(target);
    }

    public void writeAtomically(CloseableIterator<String> lines, boolean overwrite) {
      throw new UnsupportedOperationException("only Parquet is written into memory");
    }
  }

  private static final class Stream extends PositionOutputStream {
    private final ByteArrayOutputStream target;

    Stream(ByteArrayOutputStream target) {
      this.target = target;
    }

    public long getPos() {
      return target.size();
    }

    public void write(int one) {
      target.write(one);
    }

    public void write(byte[] bytes, int from, int count) {
      target.write(bytes, from, count);
    }
  }
}
