package io.lakewright.parquet;

import io.lakewright.spark.LocalTasks;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.spark.TaskContext;

/**
 * The pages of one input, read forwards; what was read byte by byte, as the headers of pages are, is kept for writing.
 */
public final class ParquetInput extends InputStream {
  private static final int BUFFER_BYTES = 1 << 20; // Of reads and writes: few calls, little memory.
  private static final int MAX_REST_BYTES = 1 << 26; // Of indexes and filters, read at once.
  private static final int FIRST_BYTE = 4; // Behind the magic bytes.

  final String file;
  final ByteArrayOutputStream header = new ByteArrayOutputStream();
  private final FSDataInputStream in;
  private final int bufferBytes;
  private BufferedInputStream buffered;
  private long position = -1;

  ParquetInput(String file, FSDataInputStream in, long size) {
    this.file = file;
    this.in = in;
    this.bufferBytes = bufferBytes(size);
  }

  /** Of reads or writes of so many bytes: no more than those, as a new buffer is filled with zeros. */
  static int bufferBytes(long bytes) {
    return (int) Math.max(1, Math.min(bytes, BUFFER_BYTES));
  }

  long position() {
    return position;
  }

  void seek(long to) throws IOException {
    if (to != position) {
      in.seek(to);
      buffered = new BufferedInputStream(in, bufferBytes);
      position = to;
    }
  }

  public int read() throws IOException {
    int one = buffered.read();
    if (one >= 0) {
      header.write(one);
      position++;
    }
    return one;
  }

  public int read(byte[] bytes, int offset, int length) throws IOException {
    int count = buffered.read(bytes, offset, length);
    if (count > 0) {
      header.write(bytes, offset, count);
      position += count;
    }
    return count;
  }

  void copy(int length, OutputStream to, byte[] buffer, CRC32 crc) throws IOException {
    int left = length;
    while (left > 0) {
      checkCancelled();
      int count = buffered.read(buffer, 0, Math.min(left, buffer.length));
      if (count < 0) {
        throw new EOFException();
      }
      to.write(buffer, 0, count);
      crc.update(buffer, 0, count);
      position += count;
      left -= count;
    }
  }

  /** Returns what lies between the last page that was read and the footer, which begins at `end`. */
  Rest rest(long end) throws IOException {
    return new Rest(in, Math.max(position, FIRST_BYTE), end);
  }

  /** Spark asks tasks to end by a flag: a thread that never looks at it goes on. */
  static void checkCancelled() throws IOException {
    TaskContext task = TaskContext.get(); // Null outside of Spark's tasks; executors have no LocalTasks.
    if (task == null ? LocalTasks.isCancelled() : task.isInterrupted()) {
      throw new InterruptedIOException("the copy was cancelled");
    }
  }

  /** What lies between the last page of an input and its footer, which is where most writers keep indexes. */
  public static final class Rest {
    private final FSDataInputStream in;
    private final long start;
    private final long end;
    private final byte[] bytes;

    Rest(FSDataInputStream in, long start, long end) throws IOException {
      this.in = in;
      this.start = start;
      this.end = end;
      this.bytes = read(in, start, end - start <= MAX_REST_BYTES ? (int) Math.max(0, end - start) : 0);
    }

    /** Returns the bytes of an index or a filter; throws NotCopyable where the file has no such bytes. */
    byte[] bytes(long offset, int length) throws IOException {
      if (offset < FIRST_BYTE || length < 0 || offset + length > end) {
        throw new NotCopyable("damaged");
      }
      if (offset < start || offset + length > start + bytes.length) {
        return read(in, offset, length);
      }
      byte[] part = new byte[length];
      System.arraycopy(bytes, (int) (offset - start), part, 0, length);
      return part;
    }

    /** Returns these bytes, or fewer at the end of the file. */
    byte[] bytesUpTo(long offset, int length) throws IOException {
      return bytes(offset, (int) Math.min(length, end - offset));
    }

    private static byte[] read(FSDataInputStream in, long offset, int length) throws IOException {
      byte[] bytes = new byte[length];
      in.readFully(offset, bytes, 0, length);
      return bytes;
    }
  }
}
