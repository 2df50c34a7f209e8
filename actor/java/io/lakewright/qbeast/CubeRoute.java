package io.lakewright.qbeast;

import io.lakewright.parquet.KeyRoute;
import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.HashMap;

/** The outputs that rows go to by the cubes that they belong into. */
public final class CubeRoute implements KeyRoute {
  private static final long serialVersionUID = 1L;

  private final IndexedColumns columns;
  private final QbeastCube cubes;
  private final HashMap<String, Object> outputs;

  /** outputs: the number of each cube's output, as a JSON object. */
  public CubeRoute(String types, QbeastCube cubes, String outputs) throws IOException {
    columns = new IndexedColumns(types);
    this.cubes = cubes;
    this.outputs = new HashMap<>(Json.object(outputs));
  }

  /** Throws NullPointerException for a row of another cube than were counted. */
  public int outputOf(Object[] key) {
    return (Integer) outputs.get(cubes.of(columns.mapped(key), columns.weight(key), ""));
  }
}
