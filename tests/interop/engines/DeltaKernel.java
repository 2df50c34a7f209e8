// Delta Kernel (Java) as a reader and an appender, for tests/interop/engines/kernel.py.
//
// Janino, which Spark ships, compiles this in the running JVM: hence no lambdas, no type arguments, and no compiler to
// install. Values go out as JSON that tells what JSON alone could not: "s..." a string, "b..." bytes in Base64, "d..."
// a decimal, "F..." and "D..." the bits of a float and a double; dates and timestamps are plain integers.
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.delta.kernel.DataWriteContext;
import io.delta.kernel.Operation;
import io.delta.kernel.Scan;
import io.delta.kernel.ScanBuilder;
import io.delta.kernel.Snapshot;
import io.delta.kernel.Table;
import io.delta.kernel.Transaction;
import io.delta.kernel.data.ArrayValue;
import io.delta.kernel.data.ColumnVector;
import io.delta.kernel.data.FilteredColumnarBatch;
import io.delta.kernel.data.MapValue;
import io.delta.kernel.data.Row;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.engine.Engine;
import io.delta.kernel.engine.FileReadResult;
import io.delta.kernel.expressions.Column;
import io.delta.kernel.expressions.Literal;
import io.delta.kernel.expressions.Predicate;
import io.delta.kernel.internal.InternalScanFileUtils;
import io.delta.kernel.internal.data.ScanStateRow;
import io.delta.kernel.internal.data.StructRow;
import io.delta.kernel.internal.util.Utils;
import io.delta.kernel.types.*;
import io.delta.kernel.utils.CloseableIterable;
import io.delta.kernel.utils.CloseableIterator;
import io.delta.kernel.utils.FileStatus;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;

public class DeltaKernel {
  private final ObjectMapper json = new ObjectMapper();
  private final Engine engine = DefaultEngine.create(new Configuration());

  /** Returns {"types": {name: type}, "rows": [[...]], "files": n}; `column` null reads without a predicate. */
  public String read(String path, String column, String operator, String type, String text) throws Exception {
    Snapshot snapshot = Table.forPath(engine, path).getLatestSnapshot(engine);
    ScanBuilder builder = snapshot.getScanBuilder();
    if (column != null) {
      builder = builder.withFilter(new Predicate(operator, new Column(column), literal(type, text)));
    }
    Scan scan = builder.build();
    Row state = scan.getScanState(engine);
    StructType physical = ScanStateRow.getPhysicalDataReadSchema(state);
    ObjectNode told = json.createObjectNode();
    ObjectNode types = told.putObject("types");
    StructType schema = snapshot.getSchema();
    for (int i = 0; i < schema.length(); i++) {
      types.put(schema.at(i).getName(), typeName(schema.at(i).getDataType()));
    }
    ArrayNode rows = told.putArray("rows");
    int files = 0;
    CloseableIterator batches = scan.getScanFiles(engine);
    while (batches.hasNext()) {
      CloseableIterator scanFiles = ((FilteredColumnarBatch) batches.next()).getRows();
      while (scanFiles.hasNext()) {
        readFile(state, (Row) scanFiles.next(), physical, rows);
        files++;
      }
    }
    told.put("files", files);
    return json.writeValueAsString(told);
  }

  private void readFile(Row state, Row scanFile, StructType physical, ArrayNode rows) throws Exception {
    FileStatus status = InternalScanFileUtils.getAddFileStatus(scanFile);
    CloseableIterator data = new Batches(
        engine.getParquetHandler().readParquetFiles(Utils.singletonCloseableIterator(status), physical, Optional.empty()));
    CloseableIterator logical = Scan.transformPhysicalData(engine, state, scanFile, data);
    while (logical.hasNext()) {
      CloseableIterator found = ((FilteredColumnarBatch) logical.next()).getRows();
      while (found.hasNext()) {
        Row row = (Row) found.next();
        ArrayNode out = rows.addArray();
        for (int i = 0; i < row.getSchema().length(); i++) {
          out.add(json.valueToTree(fromRow(row, i, row.getSchema().at(i).getDataType())));
        }
      }
    }
  }

  /** Appends, in one commit, the rows of Parquet files: one for each partition, whose values are name, type, text... */
  public long append(String path, List files, List partitions) throws Exception {
    Transaction transaction = Table.forPath(engine, path)
        .createTransactionBuilder(engine, "laboratory", Operation.WRITE).build(engine);
    Row state = transaction.getTransactionState(engine);
    StructType schema = transaction.getSchema(engine);
    List actions = new ArrayList();
    for (int i = 0; i < files.size(); i++) {
      Map values = new HashMap();
      List texts = (List) partitions.get(i);
      for (int k = 0; k < texts.size(); k += 3) {
        values.put(texts.get(k), literal((String) texts.get(k + 1), (String) texts.get(k + 2)));
      }
      String file = (String) files.get(i);
      FileStatus status = FileStatus.of(file, new java.io.File(file).length(), 0L);
      CloseableIterator data = new Filtered(
          engine.getParquetHandler().readParquetFiles(Utils.singletonCloseableIterator(status), schema, Optional.empty()));
      CloseableIterator ready = Transaction.transformLogicalData(engine, state, data, values);
      DataWriteContext context = Transaction.getWriteContext(engine, state, values);
      CloseableIterator written = engine.getParquetHandler()
          .writeParquetFiles(context.getTargetDirectory(), ready, context.getStatisticsColumns());
      CloseableIterator adds = Transaction.generateAppendActions(engine, state, written, context);
      while (adds.hasNext()) {
        actions.add(adds.next());
      }
    }
    return transaction.commit(engine, new Actions(actions)).getVersion();
  }

  private static Literal literal(String type, String text) {
    if (text == null) {
      return Literal.ofNull(dataType(type));
    }
    if (type.equals("string")) return Literal.ofString(text);
    if (type.equals("boolean")) return Literal.ofBoolean(Boolean.parseBoolean(text));
    if (type.equals("byte")) return Literal.ofByte(Byte.parseByte(text));
    if (type.equals("short")) return Literal.ofShort(Short.parseShort(text));
    if (type.equals("integer")) return Literal.ofInt(Integer.parseInt(text));
    if (type.equals("long")) return Literal.ofLong(Long.parseLong(text));
    if (type.equals("float")) return Literal.ofFloat(Float.parseFloat(text));
    if (type.equals("double")) return Literal.ofDouble(Double.parseDouble(text));
    if (type.equals("date")) return Literal.ofDate(Integer.parseInt(text));
    if (type.equals("timestamp")) return Literal.ofTimestamp(Long.parseLong(text));
    if (type.equals("timestamp_ntz")) return Literal.ofTimestampNtz(Long.parseLong(text));
    DecimalType decimal = (DecimalType) dataType(type);
    return Literal.ofDecimal(new BigDecimal(text), decimal.getPrecision(), decimal.getScale());
  }

  private static DataType dataType(String type) {
    if (type.startsWith("decimal(")) {
      String[] parts = type.substring(8, type.length() - 1).split(",");
      return new DecimalType(Integer.parseInt(parts[0]), Integer.parseInt(parts[1]));
    }
    return BasePrimitiveType.createPrimitive(type);
  }

  private static String typeName(DataType type) {
    if (type instanceof ArrayType) return "array<" + typeName(((ArrayType) type).getElementType()) + ">";
    if (type instanceof MapType) {
      return "map<" + typeName(((MapType) type).getKeyType()) + "," + typeName(((MapType) type).getValueType()) + ">";
    }
    if (type instanceof StructType) {
      StringBuilder text = new StringBuilder("struct<");
      StructType struct = (StructType) type;
      for (int i = 0; i < struct.length(); i++) {
        text.append(i == 0 ? "" : ",").append(struct.at(i).getName()).append(":");
        text.append(typeName(struct.at(i).getDataType()));
      }
      return text.append(">").toString();
    }
    if (type instanceof DecimalType) {
      return "decimal(" + ((DecimalType) type).getPrecision() + "," + ((DecimalType) type).getScale() + ")";
    }
    return type.toString();
  }

  private Object fromRow(Row row, int i, DataType type) {
    if (row.isNullAt(i)) return null;
    if (type instanceof BooleanType) return Boolean.valueOf(row.getBoolean(i));
    if (type instanceof ByteType) return Long.valueOf(row.getByte(i));
    if (type instanceof ShortType) return Long.valueOf(row.getShort(i));
    if (type instanceof IntegerType || type instanceof DateType) return Long.valueOf(row.getInt(i));
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
      return Long.valueOf(row.getLong(i));
    }
    if (type instanceof FloatType) return "F" + Float.floatToIntBits(row.getFloat(i));
    if (type instanceof DoubleType) return "D" + Double.doubleToLongBits(row.getDouble(i));
    if (type instanceof DecimalType) return "d" + row.getDecimal(i).toPlainString();
    if (type instanceof BinaryType) return "b" + Base64.getEncoder().encodeToString(row.getBinary(i));
    if (type instanceof StructType) return fields(row.getStruct(i), (StructType) type);
    if (type instanceof ArrayType) return items(row.getArray(i).getElements(), row.getArray(i).getSize());
    if (type instanceof MapType) return entries(row.getMap(i));
    return "s" + row.getString(i);
  }

  private Map fields(Row row, StructType type) {
    List fields = new ArrayList();
    for (int i = 0; i < type.length(); i++) {
      List field = new ArrayList();
      field.add(type.at(i).getName());
      field.add(fromRow(row, i, type.at(i).getDataType()));
      fields.add(field);
    }
    Map struct = new HashMap();
    struct.put("struct", fields);
    return struct;
  }

  private Map entries(MapValue value) {
    List keys = items(value.getKeys(), value.getSize());
    List values = items(value.getValues(), value.getSize());
    List entries = new ArrayList();
    for (int i = 0; i < keys.size(); i++) {
      List entry = new ArrayList();
      entry.add(keys.get(i));
      entry.add(values.get(i));
      entries.add(entry);
    }
    Map map = new HashMap();
    map.put("map", entries);
    return map;
  }

  private List items(ColumnVector vector, int size) {
    List items = new ArrayList();
    for (int i = 0; i < size; i++) {
      items.add(fromVector(vector, i));
    }
    return items;
  }

  private Object fromVector(ColumnVector vector, int i) {
    DataType type = vector.getDataType();
    if (vector.isNullAt(i)) return null;
    if (type instanceof BooleanType) return Boolean.valueOf(vector.getBoolean(i));
    if (type instanceof ByteType) return Long.valueOf(vector.getByte(i));
    if (type instanceof ShortType) return Long.valueOf(vector.getShort(i));
    if (type instanceof IntegerType || type instanceof DateType) return Long.valueOf(vector.getInt(i));
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
      return Long.valueOf(vector.getLong(i));
    }
    if (type instanceof FloatType) return "F" + Float.floatToIntBits(vector.getFloat(i));
    if (type instanceof DoubleType) return "D" + Double.doubleToLongBits(vector.getDouble(i));
    if (type instanceof DecimalType) return "d" + vector.getDecimal(i).toPlainString();
    if (type instanceof BinaryType) return "b" + Base64.getEncoder().encodeToString(vector.getBinary(i));
    if (type instanceof StructType) return fields(StructRow.fromStructVector(vector, i), (StructType) type);
    if (type instanceof ArrayType) return items(vector.getArray(i).getElements(), vector.getArray(i).getSize());
    if (type instanceof MapType) return entries(vector.getMap(i));
    return "s" + vector.getString(i);
  }

  /** The batches of files that were read. */
  private static class Batches implements CloseableIterator {
    private final CloseableIterator files;

    Batches(CloseableIterator files) {
      this.files = files;
    }

    public boolean hasNext() {
      return files.hasNext();
    }

    public Object next() {
      return ((FileReadResult) files.next()).getData();
    }

    public void remove() {
      throw new UnsupportedOperationException();
    }

    public void close() throws java.io.IOException {
      files.close();
    }
  }

  /** The same, with no row left out. */
  private static class Filtered implements CloseableIterator {
    private final CloseableIterator files;

    Filtered(CloseableIterator files) {
      this.files = files;
    }

    public boolean hasNext() {
      return files.hasNext();
    }

    public Object next() {
      return new FilteredColumnarBatch(((FileReadResult) files.next()).getData(), Optional.empty());
    }

    public void remove() {
      throw new UnsupportedOperationException();
    }

    public void close() throws java.io.IOException {
      files.close();
    }
  }

  /** The actions of a commit, as often as they are asked for. */
  private static class Actions implements CloseableIterable {
    private final List actions;

    Actions(List actions) {
      this.actions = actions;
    }

    public CloseableIterator iterator() {
      return Utils.toCloseableIterator(actions.iterator());
    }

    public void close() {}
  }
}
