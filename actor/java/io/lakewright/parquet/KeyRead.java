package io.lakewright.parquet;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.spark.util.SerializableConfiguration;

/** Reads the key columns of rows that are not hidden; writes nothing. */
public final class KeyRead extends KeyTask {
  private static final long serialVersionUID = 1L;

  private final KeyFold fold;

  public KeyRead(
      ParquetStore store,
      SerializableConfiguration settings,
      ArrayList<String> files,
      ArrayList<Number> sizes,
      String[][] keys,
      HiddenRows hidden,
      KeyFold fold) {
    super(store, settings, files, sizes, keys, hidden, "", "", "UNCOMPRESSED");
    this.fold = fold;
  }

  void append(Outputs none, ColumnFile.Settings settings) throws IOException {
    for (int i = 0; i < inputs(); i++) {
      int input = i;
      try (ParquetFileReader reader = open(i)) {
        read(reader, i, (group, row, key) -> fold.add(input, key));
      }
    }
  }

  void finish(Outputs none) {}

  void report(List<Map<String, Object>> none, Map<String, Object> result) {
    result.put("read", fold.found());
  }
}
