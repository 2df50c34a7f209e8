package io.lakewright.qbeast;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Murmur3HashFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/** The indexed columns of rows, read as files store them: what Spark hashes of them, and what they are mapped by. */
final class IndexedColumns implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int SEED = 42; // Of Spark's `hash`.
  private static final int FIRST_DAY = (int) LocalDate.of(1900, 1, 1).toEpochDay(); // As in `spark_rows.py`.
  private static final long FIRST_MICROS = FIRST_DAY * 86_400_000_000L;
  private static final int MICROS_PER_MILLI = 1000;

  private final ArrayList<DataType> types = new ArrayList<>();

  /** types: as a JSON array of their names in the table. */
  IndexedColumns(String types) throws IOException {
    for (String name : Json.texts(types)) {
      this.types.add(DataType.fromJson('"' + name + '"'));
    }
  }

  int size() {
    return types.size();
  }

  /** The weight of a row: a hash of all of its indexed columns. */
  int weight(Object[] key) {
    long hash = SEED;
    for (int i = 0; i < key.length; i++) {
      hash = Murmur3HashFunction.hash(value(i, key[i]), types.get(i), hash);
    }
    return (int) hash;
  }

  /** The values that the place of a row follows from. */
  Object[] mapped(Object[] key) {
    Object[] mapped = new Object[key.length];
    for (int i = 0; i < key.length; i++) {
      mapped[i] = mapped(i, key[i]);
    }
    return mapped;
  }

  /** What a value is mapped by: of a day its number, of an instant the milliseconds; not a number before 1900. */
  Object mapped(int column, Object stored) {
    Object value = ordered(column, stored);
    switch (types.get(column).typeName()) {
      case "date":
        return value == null ? null : (Integer) value < FIRST_DAY ? Double.NaN : ((Integer) value).doubleValue();
      case "timestamp":
        return value == null ? null : (Long) stored < FIRST_MICROS ? Double.NaN : ((Long) value).doubleValue();
      default:
        return value;
    }
  }

  /** A value by which rows are in order: of instants the milliseconds. */
  Object ordered(int column, Object stored) {
    Object value = value(column, stored);
    if (value instanceof Decimal) {
      return ((Decimal) value).toJavaBigDecimal();
    }
    if (value instanceof UTF8String) {
      return value.toString();
    }
    boolean isInstant = value != null && types.get(column).typeName().equals("timestamp");
    return isInstant ? (Object) Math.floorDiv((Long) value, MICROS_PER_MILLI) : value;
  }

  /** A value as Spark has it in its rows. */
  private Object value(int column, Object stored) {
    DataType type = types.get(column);
    if (stored == null) {
      return null;
    }
    if (type instanceof DecimalType) {
      return decimal((DecimalType) type, stored);
    }
    switch (type.typeName()) {
      case "byte":
        return ((Long) stored).byteValue();
      case "short":
        return ((Long) stored).shortValue();
      case "integer":
      case "date":
        return ((Long) stored).intValue();
      case "string":
        return UTF8String.fromBytes((byte[]) stored);
      default:
        return stored;
    }
  }

  private static Decimal decimal(DecimalType type, Object stored) {
    BigInteger digits =
        stored instanceof Long ? BigInteger.valueOf((Long) stored) : new BigInteger((byte[]) stored);
    return Decimal.apply(new BigDecimal(digits, type.scale()), type.precision(), type.scale());
  }
}
