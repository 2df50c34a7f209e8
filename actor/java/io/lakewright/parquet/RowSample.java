package io.lakewright.parquet;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** The keys of each so many-th row: whole numbers, texts of bytes in hex, or null. */
public final class RowSample implements KeyFold {
  private static final long serialVersionUID = 1L;

  private final long every;
  private final ArrayList<List<Object>> rows = new ArrayList<>();
  private long count;

  public RowSample(long every) {
    this.every = every;
  }

  public void add(int input, Object[] key) {
    if (count++ % every == 0) {
      rows.add(spelled(key));
    }
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
