package io.lakewright.iceberg;

import io.lakewright.parquet.ColumnMerge;
import io.lakewright.parquet.PageCheck;
import io.lakewright.parquet.ParquetColumns;
import io.lakewright.parquet.ParquetTask;
import io.lakewright.parquet.RowGroupCopy;
import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Table;
import org.apache.spark.SparkContext;
import org.apache.spark.util.SerializableConfiguration;

/** The files that become one, and what is done with them, in a call each: lists would take round trips from Python. */
public final class IcebergGroup {
  private final Table table;
  private final List inputs; // In the order of their rows in the output.
  private final IcebergStore store;
  private final ArrayList paths = new ArrayList();
  private final ArrayList sizes = new ArrayList(); // In bytes.

  public IcebergGroup(Table table, List inputs) {
    this.table = table;
    this.inputs = inputs;
    this.store = new IcebergStore(table, (DataFile) inputs.get(0));
    for (Iterator one = inputs.iterator(); one.hasNext(); ) {
      DataFile input = (DataFile) one.next();
      paths.add(input.location());
      sizes.add(Long.valueOf(input.fileSizeInBytes()));
    }
  }

  /** Returns what `ParquetColumns` says of files, as JSON; they, their sizes and the ids are JSON arrays. */
  public String columns(String files, String bytes, int threads, String ids) throws IOException {
    return ParquetColumns.read(store, Json.texts(files), Json.numbers(bytes), threads, Json.numbers(ids)).text();
  }

  /** Returns why the columns or the partitions of the inputs, which have one schema, are not those of the table. */
  public String mismatch() throws IOException {
    return IcebergFiles.mismatch(table, inputs, (String) paths.get(0), ((Long) sizes.get(0)).longValue());
  }

  /** Copies the row groups of the inputs into a file below so many bytes (0: of any size); returns what it is, as JSON. */
  public String copied(SparkContext context, long endBytes) throws Exception {
    return Json.text(ParquetTask.run(context, new RowGroupCopy(store, paths, sizes, "", ".parquet", endBytes)));
  }

  /** Merges the inputs column by column, by these settings beside Hadoop's, a JSON object; returns the same. */
  public String merged(SparkContext context, Configuration hadoop, String settings, String codec) throws Exception {
    Configuration own = new Configuration(hadoop);
    for (Iterator one = Json.object(settings).entrySet().iterator(); one.hasNext(); ) {
      Map.Entry setting = (Map.Entry) one.next();
      own.set((String) setting.getKey(), (String) setting.getValue());
    }
    SerializableConfiguration sent = new SerializableConfiguration(own);
    return Json.text(ParquetTask.run(context, new ColumnMerge(store, sent, paths, sizes, "", ".parquet", codec)));
  }

  /** Throws what copying throws for a page that differs from its checksum. */
  public void checkPages(SparkContext context) throws Exception {
    for (int i = 0; i < inputs.size(); i++) {
      ArrayList path = new ArrayList();
      path.add(paths.get(i));
      ArrayList size = new ArrayList();
      size.add(sizes.get(i));
      ParquetTask.run(context, new RowGroupCopy(new PageCheck(store), path, size, "", ".parquet", 0L));
    }
  }

  /** Returns an output as Iceberg's own writer would describe it. */
  public DataFile described(String file, long size) throws IOException {
    return IcebergFiles.describe(table, inputs, file, size);
  }
}
