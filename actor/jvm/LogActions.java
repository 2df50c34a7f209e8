package io.lakewright;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.util.JsonUtils;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
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

  /** Returns metrics of these names and values (Integer or Long), as a commit's operation takes them. */
  public static Map metrics(SparkContext context, List names, List values) {
    HashMap metrics = new HashMap();
    for (int i = 0; i < names.size(); i++) {
      SQLMetric metric = SQLMetrics.createMetric(context, (String) names.get(i));
      metric.set(((Number) values.get(i)).longValue());
      metrics.put(names.get(i), metric);
    }
    return PythonUtils.toScalaMap(metrics);
  }
}
