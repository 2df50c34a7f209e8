package io.lakewright.iceberg;

import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/**
 * A table as a rewrite reads and writes it: everything may be null, for a rewrite changes no row and enforces nothing.
 *
 * <p>Spark trusts a schema that says "required": in the place of a null, which writers that check nothing leave there, it
 * puts the value of the row before.
 */
public final class UncheckedTable {
  private UncheckedTable() {}

  /** Returns the table with its newest schema, whose columns are optional at every level; it cannot be committed to. */
  public static Table of(BaseTable table) {
    TableMetadata current = table.operations().current();
    Schema schema = new Schema(fields(current.schema().columns()));
    TableMetadata changed = current.updateSchema(schema);
    return new BaseTable(
        new StaticTableOperations(changed, table.io(), table.locationProvider()), table.name());
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
}
