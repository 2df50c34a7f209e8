package io.lakewright.iceberg;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.types.TypeUtil;

/**
 * Counts of values and nulls in the files of Iceberg's writers, which leave out rows without the struct above a field: of
 * floats in Parquet, of every field in ORC. Readers then skip a file as if none of its values were null.
 *
 * <p>How many values are no nulls is right: the other rows are nulls.
 */
public final class OutputCounts {
  private OutputCounts() {}

  /** Returns files, which are of one table, with counts of all their rows. */
  public static List<DataFile> completed(Table table, Iterable<DataFile> files) {
    Map<Integer, Integer> parents = TypeUtil.indexParents(table.schema().asStruct());
    List<DataFile> found = new ArrayList<>();
    for (DataFile file : files) {
      found.add(file.valueCounts() == null || file.nullValueCounts() == null ? file : completed(table, file, parents));
    }
    return found;
  }

  private static DataFile completed(Table table, DataFile file, Map<Integer, Integer> parents) {
    Map<Integer, Long> values = new HashMap<>(file.valueCounts());
    Map<Integer, Long> nulls = new HashMap<>(file.nullValueCounts());
    long rows = file.recordCount();
    for (Map.Entry<Integer, Long> counted : file.valueCounts().entrySet()) {
      Integer id = counted.getKey();
      Long known = nulls.get(id);
      if (known != null && isOncePerRow(table.schema(), id, parents)) {
        values.put(id, rows);
        nulls.put(id, rows - (counted.getValue() - known));
      }
    }
    Metrics metrics = new Metrics(rows, file.columnSizes(), values, nulls, file.nanValueCounts(), file.lowerBounds(),
        file.upperBounds());
    return DataFiles.builder(table.specs().get(file.specId())).copy(file).withMetrics(metrics).build();
  }

  /** Returns how many nulls files claim to have, by the ids of fields, as JSON. */
  public static String nulls(List<DataFile> files) throws IOException {
    List<Map<Integer, Long>> found = new ArrayList<>();
    for (DataFile file : files) {
      found.add(file.nullValueCounts() == null ? Map.of() : file.nullValueCounts());
    }
    return Json.text(found);
  }

  /** Returns whether a field, which the schema may not have, is below structs alone. */
  private static boolean isOncePerRow(Schema schema, Integer id, Map<Integer, Integer> parents) {
    boolean isInStructs = schema.findField(id) != null;
    for (Integer above = parents.get(id); above != null; above = parents.get(above)) {
      isInStructs = isInStructs && schema.findType(above).isStructType();
    }
    return isInStructs;
  }
}
