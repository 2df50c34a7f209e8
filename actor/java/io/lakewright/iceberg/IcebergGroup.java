package io.lakewright.iceberg;

import io.lakewright.parquet.ColumnMerge;
import io.lakewright.parquet.HiddenRows;
import io.lakewright.parquet.KeyFold;
import io.lakewright.parquet.KeyRead;
import io.lakewright.parquet.KeyRoute;
import io.lakewright.parquet.PageCheck;
import io.lakewright.parquet.ParquetColumns;
import io.lakewright.parquet.ParquetTask;
import io.lakewright.parquet.RowGroupCopy;
import io.lakewright.parquet.RowScatter;
import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Table;
import org.apache.spark.SparkContext;
import org.apache.spark.util.SerializableConfiguration;

/** The files that become one, and what is done with them, in a call each: lists would take round trips from Python. */
public final class IcebergGroup {
  private static final String NAME = "part-";
  private static final String SUFFIX = ".parquet";

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
    return Json.text(ParquetTask.run(context, new RowGroupCopy(store, paths, sizes, NAME, SUFFIX, endBytes)));
  }

  /**
   * Merges the inputs column by column, without hidden rows (null: there are none), by these settings beside Hadoop's, a JSON
   * object; returns the same.
   */
  public String merged(SparkContext context, Configuration hadoop, String settings, String codec, HiddenRows hidden)
      throws Exception {
    SerializableConfiguration sent = sent(hadoop, settings);
    return Json.text(ParquetTask.run(context, new ColumnMerge(store, sent, paths, sizes, NAME, SUFFIX, codec, hidden)));
  }

  /**
   * Reads the key columns of the inputs; returns what is found of them as `read`, as JSON.
   *
   * @param columns the paths of the key columns in the files
   * @param hidden rows that are left out, null: none
   */
  public String read(SparkContext context, Configuration hadoop, String columns, HiddenRows hidden, KeyFold fold)
      throws Exception {
    return Json.text(ParquetTask.run(context,
        new KeyRead(store, sent(hadoop, "{}"), paths, sizes, Json.read(columns, String[][].class), hidden, fold)));
  }

  /**
   * Divides the rows of the inputs among outputs by their keys; returns those that have rows as `outputs`, as JSON.
   *
   * @param prefixes of the names of all outputs
   */
  public String divided(
      SparkContext context,
      Configuration hadoop,
      String settings,
      String codec,
      String columns,
      HiddenRows hidden,
      KeyRoute route,
      String prefixes)
      throws Exception {
    List<String> names = Json.texts(prefixes);
    Table prefixed = StagedTable.of((BaseTable) table, table.name(), true, names);
    IcebergStore named = new IcebergStore(prefixed, (DataFile) inputs.get(0));
    return Json.text(ParquetTask.run(context, new RowScatter(
        named, sent(hadoop, settings), paths, sizes, Json.read(columns, String[][].class), hidden, "", SUFFIX, codec, route,
        0, names.size())));
  }

  private static SerializableConfiguration sent(Configuration hadoop, String settings) throws IOException {
    Configuration own = new Configuration(hadoop);
    for (Map.Entry<String, Object> setting : Json.object(settings).entrySet()) {
      own.set(setting.getKey(), (String) setting.getValue());
    }
    return new SerializableConfiguration(own);
  }

  /** Throws what copying throws for a page that differs from its checksum. */
  public void checkPages(SparkContext context) throws Exception {
    for (int i = 0; i < inputs.size(); i++) {
      ArrayList path = new ArrayList(paths.subList(i, i + 1));
      ArrayList size = new ArrayList(sizes.subList(i, i + 1));
      ParquetTask.run(context, new RowGroupCopy(new PageCheck(store), path, size, NAME, SUFFIX, 0L));
    }
  }

  /** Returns an output that has all rows of the inputs as Iceberg's own writer would describe it. */
  public DataFile described(String file, long size) throws IOException {
    return IcebergFiles.describe(table, inputs, file, size, true);
  }

  /** Returns the same of an output that has some of them; null if it has no bounds of one of these columns, by their ids. */
  public DataFile part(String file, long size, String columns) throws IOException {
    DataFile found = IcebergFiles.describe(table, inputs, file, size, false);
    for (Number column : Json.numbers(columns)) {
      if (!IcebergFiles.isBounded(found, Integer.valueOf(column.intValue()))) {
        return null;
      }
    }
    return found;
  }
}
