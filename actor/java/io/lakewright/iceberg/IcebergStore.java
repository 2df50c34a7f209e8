package io.lakewright.iceberg;

import io.lakewright.parquet.ParquetStore;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.PositionedReadable;
import org.apache.hadoop.fs.Seekable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/** Files of one partition of an Iceberg table, through the table's own file IO and at the places that it chooses. */
public final class IcebergStore extends ParquetStore {
  private static final long serialVersionUID = 1L;

  private final FileIO io;
  private final LocationProvider locations;
  private final PartitionSpec spec;
  private final StructLike partition; // null: the spec has no fields.
  private final transient boolean isLent; // The file IO is the table's own, as it is until this is sent elsewhere.

  public IcebergStore(Table table, DataFile input) {
    Table copy = SerializableTable.copyOf(table);
    io = copy.io();
    isLent = true;
    locations = table.locationProvider();
    spec = table.specs().get(input.specId());
    partition = spec.isUnpartitioned() ? null : DataFiles.copy(spec, input.partition());
  }

  protected FSDataInputStream open(String file, long size) throws IOException {
    return new FSDataInputStream(new Adapted(io.newInputFile(file, size).newStream()));
  }

  protected String place(String name) {
    return partition == null ? locations.newDataLocation(name) : locations.newDataLocation(spec, partition, name);
  }

  protected OutputStream create(String file) {
    return io.newOutputFile(file).create();
  }

  protected void delete(String file) {
    io.deleteFile(file);
  }

  protected void close() {
    if (!isLent) {
      io.close();
    }
  }

  /**
   * A stream of Iceberg's as one of Hadoop's.
   *
   * <p>Iceberg's streams raise what their store's client raises, such as a RuntimeException when requests are
   * throttled. Here that is an IOException: it says nothing of the file, and a later run may succeed.
   */
  private static final class Adapted extends InputStream implements Seekable, PositionedReadable {
    private final SeekableInputStream in;

    Adapted(SeekableInputStream in) {
      this.in = in;
    }

    public int read() throws IOException {
      try {
        return in.read();
      } catch (RuntimeException failure) {
        throw failed(failure);
      }
    }

    public int read(byte[] bytes, int offset, int length) throws IOException {
      try {
        return in.read(bytes, offset, length);
      } catch (RuntimeException failure) {
        throw failed(failure);
      }
    }

    public void close() throws IOException {
      in.close();
    }

    public void seek(long to) throws IOException {
      try {
        in.seek(to);
      } catch (RuntimeException failure) {
        throw failed(failure);
      }
    }

    public long getPos() throws IOException {
      return in.getPos();
    }

    public boolean seekToNewSource(long target) {
      return false;
    }

    public int read(long position, byte[] bytes, int offset, int length) throws IOException {
      long before = in.getPos();
      seek(position);
      int count = read(bytes, offset, length);
      seek(before);
      return count;
    }

    public void readFully(long position, byte[] bytes, int offset, int length) throws IOException {
      if (length == 0) {
        return; // Stores refuse a request of no bytes; files without indexes have none between pages and footer.
      }
      try {
        readRange(position, bytes, offset, length);
      } catch (RuntimeException failure) {
        throw failed(failure);
      }
    }

    public void readFully(long position, byte[] bytes) throws IOException {
      readFully(position, bytes, 0, bytes.length);
    }

    private void readRange(long position, byte[] bytes, int offset, int length) throws IOException {
      if (in instanceof RangeReadable) {
        ((RangeReadable) in).readFully(position, bytes, offset, length); // One request.
        return;
      }
      long before = in.getPos();
      in.seek(position);
      IOUtil.readFully(in, bytes, offset, length);
      in.seek(before);
    }

    private static IOException failed(RuntimeException failure) {
      return new IOException("the table's file IO failed: " + failure, failure);
    }
  }
}
