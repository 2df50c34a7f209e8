package io.lakewright.delta;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.RemoveFile;
import org.apache.spark.sql.delta.util.JsonUtils;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What is handed to Delta and taken from it, in one call however much it is: each call from Python costs both sides. */
public final class LogActions {
  private LogActions() {}

  /** Reads the files of a JSON array of their fields, without the `add` wrapper. */
  public static Seq<AddFile> adds(String json) throws IOException {
    return PythonUtils.toSeq(List.of(JsonUtils.mapper().readValue(json, AddFile[].class)));
  }

  /** Returns the removal of each of these files, as Delta makes it. */
  public static Seq<RemoveFile> removes(Seq<AddFile> adds, long atMs, boolean isDataChange) {
    Stream<AddFile> removed = CollectionConverters.asJava(adds).stream();
    List<RemoveFile> removes = removed.map(add -> add.removeWithTimestamp(atMs, isDataChange)).toList();
    return PythonUtils.toSeq(removes);
  }

  /** Returns what replaces files, which the transaction has read then, by others; both are such arrays. */
  public static Seq<Action> replacement(OptimisticTransaction txn, String inputs, String outputs, long atMs)
      throws IOException {
    Seq<AddFile> read = adds(inputs);
    txn.trackFilesRead(read);
    List<Action> actions = new ArrayList<>(CollectionConverters.asJava(adds(outputs)));
    actions.addAll(CollectionConverters.asJava(removes(read, atMs, false)));
    return PythonUtils.toSeq(actions);
  }

  /** Returns metadata and protocol of a snapshot as JSON, a line each. */
  public static String shape(Snapshot snapshot) {
    return snapshot.metadata().json() + "\n" + snapshot.protocol().json();
  }
}
