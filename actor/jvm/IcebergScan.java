package io.lakewright;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.util.StructLikeWrapper;

/** What a scan of an Iceberg table found, in one call: each field of each file would take a round trip from Python. */
public final class IcebergScan {
  private IcebergScan() {}

  /**
   * Returns of each scan task the path of its file, its size in bytes, its rows, its spec, its sequence number (null: not
   * known), how many delete files apply to it, and which task is the first whose file has this spec and partition.
   */
  public static List rows(List tasks) {
    Map wrappers = new HashMap(); // One for each spec, which compares its partitions.
    Map firsts = new HashMap();
    List rows = new ArrayList();
    for (int i = 0; i < tasks.size(); i++) {
      FileScanTask task = (FileScanTask) tasks.get(i);
      DataFile file = (DataFile) task.file();
      Integer spec = Integer.valueOf(file.specId());
      if (!wrappers.containsKey(spec)) {
        wrappers.put(spec, StructLikeWrapper.forType(task.spec().partitionType()));
        firsts.put(spec, new HashMap());
      }
      Map ofSpec = (Map) firsts.get(spec);
      StructLikeWrapper partition = ((StructLikeWrapper) wrappers.get(spec)).copyFor(file.partition());
      if (!ofSpec.containsKey(partition)) {
        ofSpec.put(partition, Integer.valueOf(i));
      }
      List row = new ArrayList();
      row.add(file.location());
      row.add(Long.valueOf(file.fileSizeInBytes()));
      row.add(Long.valueOf(file.recordCount()));
      row.add(spec);
      row.add(file.fileSequenceNumber());
      row.add(Integer.valueOf(task.deletes().size()));
      row.add(ofSpec.get(partition));
      rows.add(row);
    }
    return rows;
  }
}
