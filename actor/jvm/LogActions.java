package io.lakewright;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.util.JsonUtils;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** What is handed to Delta and taken from it, in one call however much it is: each call from Python costs both sides. */
public final class LogActions {
  private LogActions() {}

  /** Reads the files of a JSON array of their fields, without the `add` wrapper. */
  public static Seq adds(String json) throws IOException {
    Object[] adds = (Object[]) JsonUtils.mapper().readValue(json, AddFile[].class);
    return PythonUtils.toSeq(Arrays.asList(adds));
  }

  /** Returns the removal of each of these files, as Delta makes it. */
  public static Seq removes(Seq adds, long atMs, boolean isDataChange) {
    List removes = new ArrayList();
    for (Iterator each = adds.iterator(); each.hasNext(); ) {
      removes.add(((AddFile) each.next()).removeWithTimestamp(atMs, isDataChange));
    }
    return PythonUtils.toSeq(removes);
  }

  /** Returns metadata and protocol of a snapshot as JSON, a line each. */
  public static String shape(Snapshot snapshot) {
    return snapshot.metadata().json() + "\n" + snapshot.protocol().json();
  }
}
