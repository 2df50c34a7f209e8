package io.lakewright.qbeast;

import io.lakewright.parquet.KeyFold;
import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Rows and their least weight, by their file, the block of it that they are in, and the cube that they belong into. */
public final class CubeCount implements KeyFold {
  private static final long serialVersionUID = 1L;

  private final IndexedColumns columns;
  private final ArrayList<String> names; // Of the inputs.
  private final QbeastCube blocks;
  private final QbeastCube cubes;
  private final HashMap<List<Object>, Tally> tallies = new HashMap<>();

  /**
   * @param names of the inputs, as a JSON array
   * @param blocks null: the rows are in no block but the root
   */
  public CubeCount(String types, String names, QbeastCube blocks, QbeastCube cubes) throws IOException {
    columns = new IndexedColumns(types);
    this.names = new ArrayList<>(Json.texts(names));
    this.blocks = blocks;
    this.cubes = cubes;
  }

  public void add(int input, Object[] key) {
    int weight = columns.weight(key);
    Object[] values = columns.mapped(key);
    String name = names.get(input);
    String block = blocks == null ? "" : blocks.of(values, weight, name);
    tallies.computeIfAbsent(List.of(name, block, cubes.of(values, weight, "")), place -> new Tally()).add(weight);
  }

  /** Returns of each its name, block, cube, rows, and least weight. */
  public Object found() {
    List<List<Object>> found = new ArrayList<>();
    for (Map.Entry<List<Object>, Tally> each : tallies.entrySet()) {
      List<Object> row = new ArrayList<>(each.getKey());
      row.add(each.getValue().rows);
      row.add(each.getValue().least);
      found.add(row);
    }
    return found;
  }

  private static final class Tally {
    long rows;
    int least = Integer.MAX_VALUE;

    void add(int weight) {
      rows++;
      least = Math.min(least, weight);
    }
  }
}
