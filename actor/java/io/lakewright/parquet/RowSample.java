package io.lakewright.parquet;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * The keys of about each so many-th row, by a hash of its number because keys may take turns in files: whole numbers,
 * texts of bytes in hex, or null.
 */
public final class RowSample implements KeyFold {
  private static final long serialVersionUID = 1L;

  private final long every;
  private final ArrayList<List<Object>> rows = new ArrayList<>();
  private long count;

  public RowSample(long every) {
    this.every = every;
  }

  public void add(int input, Object[] key) {
    if (Long.remainderUnsigned(mixed(count++), every) == 0) {
      rows.add(spelled(key));
    }
  }

  /** The last steps of splitmix64. */
  private static long mixed(long number) {
    long mixed = (number ^ (number >>> 30)) * 0xbf58476d1ce4e5b9L;
    mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
    return mixed ^ (mixed >>> 31);
  }

  private static List<Object> spelled(Object[] key) {
    List<Object> found = new ArrayList<>();
    for (Object value : key) {
      found.add(value instanceof byte[] ? HexFormat.of().formatHex((byte[]) value) : value);
    }
    return found;
  }

  public Object found() {
    return rows;
  }
}
