package io.lakewright.parquet;

import io.lakewright.spark.LocalTasks;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.Function;

/** Writes Parquet files out of others, on an executor or in a local driver; an unwanted file does not stay behind. */
public abstract class ParquetTask implements Function {
  private static final long serialVersionUID = 1L;

  private final ParquetStore store;
  private final ArrayList<String> files; // Inputs as the store spells paths, in the order of their rows in the output.
  private final ArrayList<Number> sizes; // Their sizes in bytes.
  private final String prefix; // Of the output's name, which is made here: each attempt of a task has its own.
  private final String suffix;

  ParquetTask(ParquetStore store, ArrayList<String> files, ArrayList<Number> sizes, String prefix, String suffix) {
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

  /** Writes the outputs; throws NotCopyable if that cannot be done exactly. */
  abstract void write(Outputs outputs) throws IOException;

  /** Reports what was made: of the one output of most tasks what `Outputs` says of it. */
  void report(List<Map<String, Object>> made, Map<String, Object> result) {
    result.putAll(made.get(0));
  }

  /**
   * Writes the outputs and returns what `report` says; or what is an `obstacle`, and no file is left then. `attempt`: how
   * often the task was begun before; an executor that was killed meanwhile may have left a file.
   */
  public Object call(Object nothing) throws Exception {
    HashMap<String, Object> result = new HashMap<>();
    result.put("attempt", Integer.valueOf(TaskContext.get() == null ? 0 : TaskContext.get().attemptNumber()));
    Outputs outputs = new Outputs();
    boolean complete = false;
    try {
      write(outputs);
      outputs.close();
      ParquetInput.checkCancelled(); // Its canceller may have searched for the files already.
      complete = true;
      report(outputs.made, result);
    } catch (NotCopyable reason) {
      result.put("obstacle", reason.getMessage());
    } finally {
      try {
        if (!complete) {
          outputs.abandon();
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
    return files.get(input);
  }

  long size(int input) {
    return sizes.get(input).longValue();
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

  /** The files of one attempt, by the numbers in their names. */
  final class Outputs {
    private final Map<Integer, Map<String, Object>> begun = new HashMap<>();
    private final Map<String, OutputStream> streams = new LinkedHashMap<>(); // By their places.
    private final List<Map<String, Object>> made = new ArrayList<>();

    /** Creates a file. */
    OutputStream create(int part) throws IOException {
      String name = String.format("%s%05d-%s%s", prefix, part, UUID.randomUUID(), suffix);
      String target = store.place(name);
      OutputStream created = store.create(target);
      streams.put(target, created);
      Map<String, Object> file = new HashMap<>();
      file.put("name", name);
      file.put("place", target);
      begun.put(part, file);
      return created;
    }

    /** Adds the `size` in bytes of a file, its `rows`, `row_groups` and time of `modification`. */
    void wrote(int part, Written written) {
      Map<String, Object> file = begun.get(part);
      file.put("size", Long.valueOf(written.bytes));
      file.put("rows", Long.valueOf(written.rows));
      file.put("row_groups", Integer.valueOf(written.rowGroups));
      file.put("modification", Long.valueOf(System.currentTimeMillis()));
      made.add(file);
    }

    private void close() throws IOException {
      for (OutputStream each : streams.values()) {
        each.close();
      }
    }

    private void abandon() throws IOException {
      IOException first = null;
      for (Map.Entry<String, OutputStream> each : streams.entrySet()) {
        ParquetTask.abandon(each.getValue());
        try {
          store.delete(each.getKey());
        } catch (IOException problem) {
          first = first == null ? problem : first;
        }
      }
      if (first != null) {
        throw first;
      }
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
