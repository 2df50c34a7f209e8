package io.lakewright.iceberg;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.ContentScanTask;
import org.apache.iceberg.ScanTask;
import org.apache.iceberg.ScanTaskGroup;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import scala.jdk.javaapi.CollectionConverters;

/** The order in which Spark reads files of an Iceberg table, as its own plan states it. */
public final class ScanOrder {
  private ScanOrder() {}

  /**
   * Returns the paths of the files whose rows one task reads, one file after the other, as JSON; an empty array if the plan
   * does not state that.
   */
  public static String of(Dataset<?> frame) throws IOException {
    List<String> paths = new ArrayList<>();
    List<SparkPlan> leaves = CollectionConverters.asJava(frame.queryExecution().executedPlan().collectLeaves());
    if (leaves.size() == 1 && leaves.get(0) instanceof BatchScanExec) {
      List<InputPartition> partitions = CollectionConverters.asJava(((BatchScanExec) leaves.get(0)).inputPartitions());
      long end = 0;
      for (ScanTask task : partitions.size() == 1 ? tasks(partitions.get(0)) : new ArrayList<ScanTask>()) {
        ContentScanTask<?> part = (ContentScanTask<?>) task;
        String path = part.file().location();
        boolean isSame = !paths.isEmpty() && paths.get(paths.size() - 1).equals(path);
        if (isSame && part.start() < end) {
          return "[]";
        }
        if (!isSame) {
          paths.add(path);
        }
        end = part.start() + part.length();
      }
    }
    return Json.text(paths);
  }

  /** Returns the tasks of a partition, none where Iceberg's class of it, which is not public, does not have them. */
  private static List<ScanTask> tasks(InputPartition partition) {
    try {
      Method tasks = partition.getClass().getDeclaredMethod("taskGroup");
      tasks.setAccessible(true);
      return new ArrayList<>(((ScanTaskGroup<?>) tasks.invoke(partition)).tasks());
    } catch (ReflectiveOperationException another) {
      return new ArrayList<>();
    }
  }
}
