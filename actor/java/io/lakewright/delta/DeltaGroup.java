package io.lakewright.delta;

import io.lakewright.parquet.ColumnMerge;
import io.lakewright.parquet.HadoopStore;
import io.lakewright.parquet.HiddenRows;
import io.lakewright.parquet.KeyFold;
import io.lakewright.parquet.KeyRead;
import io.lakewright.parquet.KeyRoute;
import io.lakewright.parquet.ParquetColumns;
import io.lakewright.parquet.ParquetTask;
import io.lakewright.parquet.RowGroupCopy;
import io.lakewright.parquet.RowScatter;
import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;

/** A group of a Delta table and the tasks that write it, one call from Python each; paths and sizes are JSON arrays. */
public final class DeltaGroup {
  private DeltaGroup() {}

  /** Reads the footers of files, and keeps them for `copied`. */
  public static ParquetColumns footers(Configuration configuration, String paths, String sizes, int threads)
      throws IOException {
    HadoopStore store = new HadoopStore(configuration, "");
    return ParquetColumns.read(store, Json.texts(paths), Json.numbers(sizes), threads, List.of());
  }

  /** Reads the footers of files; returns what `ParquetColumns.each` does. */
  public static String eachFooter(Configuration configuration, String paths, String sizes, int threads)
      throws IOException {
    HadoopStore store = new HadoopStore(configuration, "");
    return ParquetColumns.each(store, Json.texts(paths), Json.numbers(sizes), threads);
  }

  /**
   * Copies row groups into a file in a folder below so many bytes (0: of any size); returns what `ParquetTask` does, as
   * JSON.
   *
   * @param footers of the files, null if they are to be read
   */
  public static String copied(
      SparkContext context,
      Configuration configuration,
      String paths,
      String sizes,
      String folder,
      String prefix,
      String suffix,
      long endBytes,
      ParquetColumns footers)
      throws Exception {
    HadoopStore store = new HadoopStore(configuration, folder);
    RowGroupCopy task =
        new RowGroupCopy(store, list(Json.texts(paths)), list(Json.numbers(sizes)), part(prefix), suffix, endBytes);
    task.use(footers);
    return Json.text(ParquetTask.run(context, task));
  }

  /** Merges files column by column, without hidden rows (null: there are none), into one with this codec; returns the same. */
  public static String merged(
      SparkContext context,
      Configuration configuration,
      String paths,
      String sizes,
      String folder,
      String prefix,
      String suffix,
      String codec,
      HiddenRows hidden)
      throws Exception {
    HadoopStore store = new HadoopStore(configuration, folder);
    ColumnMerge task =
        new ColumnMerge(
            store, store.settings(), list(Json.texts(paths)), list(Json.numbers(sizes)), part(prefix), suffix, codec,
            hidden);
    return Json.text(ParquetTask.run(context, task));
  }

  /**
   * Reads the key columns of files; returns what is found of them as `read`.
   *
   * @param columns the paths of the key columns
   */
  public static String read(
      SparkContext context,
      Configuration configuration,
      String paths,
      String sizes,
      HiddenRows hidden,
      String columns,
      KeyFold fold)
      throws Exception {
    HadoopStore store = new HadoopStore(configuration, "");
    return Json.text(ParquetTask.run(context, new KeyRead(
        store, store.settings(), list(Json.texts(paths)), list(Json.numbers(sizes)), Json.read(columns, String[][].class),
        hidden, fold)));
  }

  /**
   * Divides the rows of files among so many outputs by their keys; returns those that have rows as `outputs`.
   *
   * @param firstPart the number in the name of the first output
   */
  public static String scattered(
      SparkContext context,
      Configuration configuration,
      String paths,
      String sizes,
      String folder,
      String prefix,
      String suffix,
      String codec,
      HiddenRows hidden,
      String columns,
      KeyRoute route,
      int firstPart,
      int outputs)
      throws Exception {
    HadoopStore store = new HadoopStore(configuration, folder);
    return Json.text(ParquetTask.run(context, new RowScatter(
        store, store.settings(), list(Json.texts(paths)), list(Json.numbers(sizes)), Json.read(columns, String[][].class),
        hidden, part(prefix), suffix, codec, route, firstPart, outputs)));
  }

  /** Returns what comes before the number of an output in its name. */
  private static String part(String prefix) {
    return prefix + "part-";
  }

  /** An executor gets the lists of a task with it. */
  private static <T> ArrayList<T> list(List<T> values) {
    return new ArrayList<>(values);
  }
}
