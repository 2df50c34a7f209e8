package io.lakewright.parquet;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/** The ways of rows along a tree of cuts of their keys, which are whole numbers or bytes. */
public final class CutTree implements KeyRoute {
  private static final long serialVersionUID = 1L;

  private final int[] column; // Of each cut its column, its value, and where rows below and others go.
  private final ArrayList<Object> value = new ArrayList<>();
  private final int[][] ways; // The number of a cut, or -1 - the number of an output.

  private CutTree(List<?>[] cuts) {
    column = new int[cuts.length];
    ways = new int[cuts.length][2];
    for (int i = 0; i < cuts.length; i++) {
      List<?> cut = cuts[i];
      column[i] = ((Number) cut.get(0)).intValue();
      Object at = cut.get(1);
      value.add(at instanceof String ? HexFormat.of().parseHex((String) at) : ((Number) at).longValue());
      ways[i][0] = ((Number) cut.get(2)).intValue();
      ways[i][1] = ((Number) cut.get(3)).intValue();
    }
  }

  /** Reads cuts: each its column, its value, and the ways of rows below it and of others: a cut, or -1 - an output. */
  public static CutTree of(String cuts) throws IOException {
    return new CutTree(Json.read(cuts, List[].class));
  }

  public int outputOf(Object[] key) {
    int way = column.length == 0 ? -1 : 0;
    while (way >= 0) {
      way = ways[way][isBelow(key[column[way]], value.get(way)) ? 0 : 1];
    }
    return -1 - way;
  }

  /** Whether a value is below another of its column; null is below all, and texts order by their bytes. */
  private static boolean isBelow(Object value, Object bound) {
    if (value == null) {
      return true;
    }
    return value instanceof Long
        ? ((Long) value).longValue() < ((Long) bound).longValue()
        : Arrays.compareUnsigned((byte[]) value, (byte[]) bound) < 0;
  }
}
