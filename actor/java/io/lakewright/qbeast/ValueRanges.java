package io.lakewright.qbeast;

import io.lakewright.parquet.KeyFold;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The least and greatest values of columns by their file, and whether some of them have no place on a line. */
public final class ValueRanges implements KeyFold {
  private static final long serialVersionUID = 1L;

  private final IndexedColumns columns;
  private final ArrayList<Range[]> files = new ArrayList<>(); // Null of a file without rows.

  public ValueRanges(String types, int files) throws IOException {
    columns = new IndexedColumns(types);
    for (int i = 0; i < files; i++) {
      this.files.add(null);
    }
  }

  public void add(int input, Object[] key) {
    Range[] ranges = files.get(input);
    if (ranges == null) {
      ranges = new Range[columns.size()];
      for (int i = 0; i < ranges.length; i++) {
        ranges[i] = new Range();
      }
      files.set(input, ranges);
    }
    for (int i = 0; i < key.length; i++) {
      if (key[i] != null) {
        double number = ((Number) columns.mapped(i, key[i])).doubleValue();
        ranges[i].add(columns.ordered(i, key[i]), Double.isNaN(number) || Double.isInfinite(number));
      }
    }
  }

  /** Returns of each file null, or of each column its `low` and `high`, and whether any value is `outside`. */
  public Object found() {
    List<Object> found = new ArrayList<>();
    for (Range[] ranges : files) {
      List<Map<String, Object>> file = ranges == null ? null : new ArrayList<>();
      for (int i = 0; i < columns.size() && ranges != null; i++) {
        Map<String, Object> column = new HashMap<>();
        column.put("low", ranges[i].low);
        column.put("high", ranges[i].high);
        column.put("outside", ranges[i].isOutside);
        file.add(column);
      }
      found.add(file);
    }
    return found;
  }

  private static final class Range implements java.io.Serializable {
    private static final long serialVersionUID = 1L;

    Object low;
    Object high;
    boolean isOutside;

    @SuppressWarnings("unchecked")
    void add(Object value, boolean hasNoPlace) {
      Comparable<Object> one = (Comparable<Object>) value;
      low = low == null || one.compareTo(low) < 0 ? value : low;
      high = high == null || one.compareTo(high) > 0 ? value : high;
      isOutside |= hasNoPlace;
    }
  }
}
