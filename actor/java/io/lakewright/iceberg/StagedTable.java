package io.lakewright.iceberg;

import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.spark.FileRewriteCoordinator;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.SparkExecutorCache;
import org.apache.iceberg.spark.SparkTableCache;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/**
 * A table as Spark reads and writes one group of its files, under a name of its own; it cannot be committed to.
 *
 * <p>Executors keep the rows of delete files by the name of the table and the path alone, whatever columns and types they
 * were read with: under the table's own name, keys that were read before a column became a long would delete nothing after.
 */
public final class StagedTable {
  private StagedTable() {}

  /** Makes tasks of a table readable in Spark under a name, and what is written under it collectable; see `of`. */
  public static void stage(
      BaseTable table, String name, List<FileScanTask> tasks, boolean isChecked, List<String> prefixes) {
    SparkTableCache.get().add(name, of(table, name, isChecked, prefixes));
    ScanTaskSetManager.get().stageTasks(table, name, tasks);
  }

  /**
   * Returns the table under a name.
   *
   * @param isChecked false where everything may be null, at every level, for a rewrite changes no row and enforces nothing:
   *     Spark trusts a schema that says "required", and puts the value of the row before in the place of a null, which
   *     writers that check nothing leave there
   * @param prefixes texts that writers put before the names of their files, by their number; null for none
   */
  static Table of(BaseTable table, String name, boolean isChecked, List<String> prefixes) {
    TableMetadata current = table.operations().current();
    TableMetadata read = isChecked ? current : current.updateSchema(new Schema(fields(current.schema().columns())));
    LocationProvider locations = table.locationProvider();
    LocationProvider named = prefixes == null ? locations : new Prefixed(locations, new ArrayList<>(prefixes));
    return new BaseTable(new StaticTableOperations(read, table.io(), named), name);
  }

  /** Forgets a name, and what executors in this JVM keep for it; others drop that when it was not used for minutes. */
  public static void unstage(Table table, String name) {
    SparkTableCache.get().remove(name);
    ScanTaskSetManager.get().removeTasks(table, name);
    FileRewriteCoordinator.get().clearRewrite(table, name);
    SparkExecutorCache kept = SparkExecutorCache.get();
    if (kept != null) {
      kept.invalidate(name);
    }
  }

  private static List<Types.NestedField> fields(List<Types.NestedField> columns) {
    List<Types.NestedField> fields = new ArrayList<>();
    for (Types.NestedField field : columns) {
      fields.add(Types.NestedField.from(field).isOptional(true).ofType(type(field.type())).build());
    }
    return fields;
  }

  private static Type type(Type type) {
    if (type.isStructType()) {
      return Types.StructType.of(fields(type.asStructType().fields()));
    }
    if (type.isListType()) {
      Types.ListType list = type.asListType();
      return Types.ListType.ofOptional(list.elementId(), type(list.elementType()));
    }
    if (type.isMapType()) {
      Types.MapType map = type.asMapType();
      return Types.MapType.ofOptional(map.keyId(), map.valueId(), type(map.keyType()), type(map.valueType()));
    }
    return type;
  }

  private static final class Prefixed implements LocationProvider {
    private static final long serialVersionUID = 1L;

    private final LocationProvider locations;
    private final ArrayList<String> prefixes;

    Prefixed(LocationProvider locations, ArrayList<String> prefixes) {
      this.locations = locations;
      this.prefixes = prefixes;
    }

    @Override
    public String newDataLocation(String name) {
      return locations.newDataLocation(prefixed(name));
    }

    @Override
    public String newDataLocation(PartitionSpec spec, StructLike partition, String name) {
      return locations.newDataLocation(spec, partition, prefixed(name));
    }

    /** Names of Iceberg's writers begin with the number of their partition in Spark. */
    private String prefixed(String name) {
      return prefixes.get(Integer.parseInt(name.substring(0, name.indexOf('-')))) + name;
    }
  }
}
