package io.lakewright.parquet;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.spark.util.SerializableConfiguration;

/** Reads the key columns of each so many-th row that is not hidden; writes nothing. */
public final class RowSample extends KeyTask {
  private static final long serialVersionUID = 1L;

  private final long every;
  private transient List<List<Object>> rows;
  private transient long count;

  public RowSample(
      ParquetStore store,
      SerializableConfiguration settings,
      ArrayList<String> files,
      ArrayList<Number> sizes,
      Keys keys,
      long every) {
    super(store, settings, files, sizes, keys, "", "", "UNCOMPRESSED");
    this.every = every;
  }

  void append(Outputs none, ColumnFile.Settings settings) throws IOException {
    rows = new ArrayList<>();
    for (int i = 0; i < inputs(); i++) {
      try (ParquetFileReader reader = open(i)) {
        read(reader, i, (group, row, key) -> {
          if (count++ % every == 0) {
            rows.add(spelled(key));
          }
        });
      }
    }
  }

  private static List<Object> spelled(Object[] key) {
    List<Object> found = new ArrayList<>();
    for (Object value : key) {
      found.add(value instanceof byte[] ? HexFormat.of().formatHex((byte[]) value) : value);
    }
    return found;
  }

  void finish(Outputs none) {}

  void report(List<Map<String, Object>> none, Map<String, Object> result) {
    result.put("rows_read", rows);
  }
}
