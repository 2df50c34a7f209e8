package io.lakewright.iceberg;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetricsConfig;
import org.apache.iceberg.MetricsUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;

/** A table in cells: the bounds of its files in the clustering columns. */
public final class IcebergCells {
  private IcebergCells() {}

  /** Returns how much of the values of columns, by their ids, the table's writers keep as bounds, as JSON. */
  public static String modes(Table table, String columns) throws IOException {
    MetricsConfig config = MetricsConfig.forTable(table);
    List<String> modes = new ArrayList<>();
    for (Number id : Json.numbers(columns)) {
      modes.add(MetricsUtil.metricsMode(table.schema(), config, id.intValue()).toString());
    }
    return Json.text(modes);
  }

  /** Returns where the table's location provider would put a file of this name; nothing is written. */
  public static String location(Table table, String name) {
    return table.locationProvider().newDataLocation(name);
  }

  /** Returns the tasks of all files of a snapshot with the metrics of floats, and of columns that its schema has. */
  public static List<FileScanTask> planned(Table table, long snapshot, String columns) throws IOException {
    TableScan scan = table.newScan().useSnapshot(snapshot).ignoreResiduals();
    List<String> names = new ArrayList<>();
    for (Number id : Json.numbers(columns)) {
      String name = scan.schema().findColumnName(id.intValue());
      if (name != null) {
        names.add(name);
      }
    }
    IcebergScan.addFloats(scan.schema().asStruct(), "", names);
    List<FileScanTask> tasks = new ArrayList<>();
    try (CloseableIterable<FileScanTask> found =
        (names.isEmpty() ? scan : scan.includeColumnStats(names)).planFiles()) {
      found.forEach(tasks::add);
    }
    return tasks;
  }

  /** Returns what `bounds` returns of the files of tasks. */
  public static String boundsOf(Table table, List<FileScanTask> tasks, String columns) throws IOException {
    List<DataFile> files = new ArrayList<>();
    tasks.forEach(task -> files.add(task.file()));
    return bounds(table, files, columns);
  }

  /**
   * Returns, as JSON, of each file and each column by its id: the bounds as Spark casts values to text (dates are days and
   * times microseconds since 1970, texts are hexadecimal bytes), and how many values are null and not a number; null for
   * what is not known.
   */
  public static String bounds(Table table, List<DataFile> files, String columns) throws IOException {
    List<Number> ids = Json.numbers(columns);
    List<List<Object>> rows = new ArrayList<>();
    for (DataFile file : files) {
      List<Object> row = new ArrayList<>();
      for (Number number : ids) {
        Integer id = number.intValue();
        Type type = table.schema().findType(id);
        row.add(Arrays.asList(text(type, of(file.lowerBounds(), id)), text(type, of(file.upperBounds(), id)),
            of(file.nullValueCounts(), id), of(file.nanValueCounts(), id)));
      }
      rows.add(row);
    }
    return Json.text(rows);
  }

  private static <T> T of(Map<Integer, T> metrics, Integer id) {
    return metrics == null ? null : metrics.get(id);
  }

  private static String text(Type type, ByteBuffer bound) {
    if (bound == null) {
      return null;
    }
    if (type.typeId() == Type.TypeID.STRING) {
      StringBuilder hex = new StringBuilder();
      for (int at = bound.position(); at < bound.limit(); at++) {
        hex.append(String.format("%02X", bound.get(at)));
      }
      return hex.toString();
    }
    Object value = Conversions.fromByteBuffer(type, bound);
    return value instanceof BigDecimal ? ((BigDecimal) value).toPlainString() : value.toString();
  }
}
