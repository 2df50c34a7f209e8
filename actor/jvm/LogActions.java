package io.lakewright;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.util.JsonUtils;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** What a commit hands to Delta, made in one call however many files it has: each call from Python costs both sides. */
public final class LogActions {
  private LogActions() {}

  /** Reads the files of a JSON array of their fields, without the `add` wrapper. */
  public static Seq adds(String json) throws IOException {
    return PythonUtils.toSeq(Arrays.asList((Object[]) read(json)));
  }

  /** Returns the removal of each file, as Delta makes it. */
  public static Seq removes(String json, long atMs, boolean isDataChange) throws IOException {
    AddFile[] adds = read(json);
    List removes = new ArrayList();
    for (int i = 0; i < adds.length; i++) {
      removes.add(adds[i].removeWithTimestamp(atMs, isDataChange));
    }
    return PythonUtils.toSeq(removes);
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

  private static AddFile[] read(String json) throws IOException {
    return (AddFile[]) JsonUtils.mapper().readValue(json, AddFile[].class);
  }
}
