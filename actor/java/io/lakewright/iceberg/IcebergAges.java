package io.lakewright.iceberg;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.ResidualEvaluator;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/**
 * Which files of an Iceberg table hold rows whose value of a column of dates or timestamps is less than a bound, by what
 * manifests say: values of partitions, and metrics.
 */
public final class IcebergAges {
  /** Of a task: no row is less than the bound, some may be, or all are by the partition or by the metrics. */
  private static final int NONE = 0;
  private static final int SOME = 1;
  private static final int ALL = 2;

  private IcebergAges() {}

  /**
   * Returns the tasks of the files of a snapshot that may hold a row with a value of a column below a bound, in days or
   * microseconds since 1970, with the metrics of the column; none where the snapshot's schema lacks the column.
   */
  public static List<FileScanTask> planned(Table table, long snapshot, int column, long bound) throws IOException {
    TableScan scan = planner(table).newScan().useSnapshot(snapshot).ignoreResiduals();
    String name = scan.schema().findColumnName(column); // Its name may have been another one then.
    if (name == null || !scan.schema().findType(column).equals(table.schema().findType(column))) {
      return Collections.emptyList();
    }
    List<FileScanTask> tasks = new ArrayList<>();
    try (CloseableIterable<FileScanTask> found = scan.includeColumnStats(Collections.singletonList(name))
        .filter(Expressions.lessThan(table.schema().findColumnName(column), typed(scan.schema().findType(column), bound))).planFiles()) {
      found.forEach(tasks::add);
    }
    return tasks;
  }

  /**
   * Returns the table as one whose scans are planned here. A catalog that plans them would leave out delete files by the
   * bounds of their columns, as it does for a query with the filter: rows that they hide would be written again.
   */
  private static Table planner(Table table) {
    return table instanceof HasTableOperations ? new BaseTable(((HasTableOperations) table).operations(), table.name()) : table;
  }

  /** Returns of each task, as text of one digit each, which of its rows are below the bound. */
  public static String below(Table table, List<FileScanTask> tasks, int column, long bound) {
    Type type = table.schema().findType(column);
    Map<Integer, ResidualEvaluator> specs = new HashMap<>();
    StringBuilder found = new StringBuilder();
    for (FileScanTask task : tasks) {
      ResidualEvaluator rest = specs.computeIfAbsent(task.spec().specId(), id -> rest(task.spec(), column, type, bound));
      Expression.Operation left = rest == null ? null : rest.residualFor(task.file().partition()).op();
      boolean all = left == Expression.Operation.TRUE;
      // Iceberg takes null for less than any value; and where a partition and metrics contradict, the file stays.
      boolean any = left != Expression.Operation.FALSE && !isNull(task, column);
      found.append(!any ? NONE : all || isBelow(task.file(), column, type, bound) ? ALL : SOME);
    }
    return found.toString();
  }

  /** Returns whether a partition that is computed from the column is null, so that all values of the file are. */
  private static boolean isNull(FileScanTask task, int column) {
    List<PartitionField> fields = task.spec().fields();
    for (int place = 0; place < fields.size(); place++) {
      PartitionField field = fields.get(place);
      boolean is = field.sourceId() == column && !field.transform().isVoid();
      if (is && task.file().partition().get(place, Object.class) == null) {
        return true;
      }
    }
    return false;
  }

  private static ResidualEvaluator rest(PartitionSpec spec, int column, Type type, long bound) {
    String name = spec.schema().findColumnName(column);
    return name == null ? null : ResidualEvaluator.of(spec, Expressions.lessThan(name, typed(type, bound)), true);
  }

  /** Returns whether the metrics say that no value is null, and that the greatest one is below the bound. */
  private static boolean isBelow(DataFile file, int column, Type type, long bound) {
    Map<Integer, Long> nulls = file.nullValueCounts();
    Map<Integer, ByteBuffer> greatest = file.upperBounds();
    ByteBuffer most = greatest == null ? null : greatest.get(column);
    if (most == null || nulls == null || !Long.valueOf(0).equals(nulls.get(column))) {
      return false;
    }
    return ((Number) Conversions.fromByteBuffer(type, most)).longValue() < bound;
  }

  /** Returns a bound as the literal that Iceberg takes for the type: days are integers. */
  private static Object typed(Type type, long bound) {
    return type.equals(Types.DateType.get()) ? (Object) Integer.valueOf((int) bound) : Long.valueOf(bound);
  }
}
