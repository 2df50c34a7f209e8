package io.lakewright.parquet;

import io.lakewright.spark.LocalTasks;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.Function;

/** Writes one Parquet file out of others, on an executor or in a local driver; an unwanted file does not stay behind. */
public abstract class ParquetTask implements Function {
  private static final long serialVersionUID = 1L;

  private final ParquetStore store;
  private final ArrayList files; // Inputs as the store spells paths, in the order of their rows in the output.
  private final ArrayList sizes; // Their sizes in bytes, as Long or Integer.
  private final String prefix; // Of the output's name, which is made here: each attempt of a task has its own.
  private final String suffix;

  ParquetTask(ParquetStore store, ArrayList files, ArrayList sizes, String prefix, String suffix) {
    this.store = store;
    this.files = files;
    this.sizes = sizes;
    this.prefix = prefix;
    this.suffix = suffix;
  }

  /** Runs the task: as one of Spark's on an executor of a cluster, in this thread where the master is local. */
  public static Object run(SparkContext context, ParquetTask task) throws Exception {
    if (context.isLocal()) {
      return LocalTasks.call(context, task);
    }
    ArrayList one = new ArrayList();
    one.add(null);
    return new JavaSparkContext(context).parallelize(one, 1).map(task).collect().get(0);
  }

  /** Writes the output; throws NotCopyable if that cannot be done exactly. */
  abstract Written write(OutputStream created) throws IOException;

  /**
   * Writes the output and returns its `name`, `place`, `size` in bytes, `rows`, `row_groups` and time of `modification`;
   * or what is an `obstacle`, and no file is left then. `attempt`: how often the task was begun before; an executor that was
   * killed meanwhile may have left a file.
   */
  public Object call(Object nothing) throws Exception {
    String name = prefix + "part-00000-" + UUID.randomUUID() + suffix;
    String target = store.place(name);
    HashMap result = new HashMap();
    result.put("attempt", Integer.valueOf(TaskContext.get() == null ? 0 : TaskContext.get().attemptNumber()));
    OutputStream created = store.create(target);
    boolean complete = false;
    try {
      Written written = write(created);
      created.close();
      ParquetInput.checkCancelled(); // Its canceller may have searched for the file already.
      complete = true;
      result.put("name", name);
      result.put("place", target);
      result.put("size", Long.valueOf(written.bytes));
      result.put("rows", Long.valueOf(written.rows));
      result.put("row_groups", Integer.valueOf(written.rowGroups));
      result.put("modification", Long.valueOf(System.currentTimeMillis()));
    } catch (NotCopyable reason) {
      result.put("obstacle", reason.getMessage());
    } finally {
      try {
        if (!complete) {
          abandon(created);
          store.delete(target);
        }
      } finally {
        store.close();
      }
    }
    return result;
  }

  FSDataInputStream open(String file, long size) throws IOException {
    return store.open(file, size);
  }

  int inputs() {
    return files.size();
  }

  String file(int input) {
    return (String) files.get(input);
  }

  long size(int input) {
    return ((Number) sizes.get(input)).longValue();
  }

  long inputBytes() {
    long bytes = 0;
    for (int i = 0; i < inputs(); i++) {
      bytes += size(i);
    }
    return bytes;
  }

  /** Lets go of a file that is not wanted, whatever state it is in; where a store can, it is never made. */
  private static void abandon(OutputStream created) {
    if (created instanceof FSDataOutputStream) {
      try {
        ((FSDataOutputStream) created).abort();
      } catch (UnsupportedOperationException notByThisStore) {
        // Closing it is what is left.
      }
    }
    try {
      created.close();
    } catch (IOException failedBefore) {
      // What failed first is what is reported.
    } catch (RuntimeException failedBefore) {
      // Iceberg's streams raise what their store's client raises.
    }
  }

  /** What an output turned out to be. */
  static final class Written {
    final long bytes;
    final long rows;
    final int rowGroups;

    Written(long bytes, long rows, int rowGroups) {
      this.bytes = bytes;
      this.rows = rows;
      this.rowGroups = rowGroups;
    }
  }
}
