package io.lakewright.delta;

import io.lakewright.parquet.HiddenRows;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.DeletionVectorDescriptor;
import org.apache.spark.sql.delta.deletionvectors.RoaringBitmapArray;
import org.apache.spark.sql.delta.deletionvectors.RoaringBitmapArrayFormat;
import org.apache.spark.sql.delta.deletionvectors.StoredBitmap;
import org.apache.spark.sql.delta.storage.dv.DeletionVectorStore;
import org.apache.spark.sql.delta.storage.dv.DeletionVectorStore$;
import org.apache.spark.sql.delta.storage.dv.DeletionVectorStoreUtils;
import org.apache.spark.sql.delta.util.JsonUtils;
import org.apache.spark.sql.delta.util.PathWithFileSystem;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Reads the rows that deletion vectors hide, and writes the vector of a file, with Delta's own classes. */
public final class RowVectors {
  private RowVectors() {}

  /** Returns the rows that the vector of each file hides; null if they are more than `atMost` in all. */
  public static HiddenRows hidden(DeltaLog log, Configuration conf, Seq<AddFile> files, long atMost) throws IOException {
    DeletionVectorStore store = DeletionVectorStore$.MODULE$.createInstance(conf);
    List<long[]> found = new ArrayList<>();
    long rows = 0;
    for (AddFile file : CollectionConverters.asJava(files)) {
      DeletionVectorDescriptor vector = file.deletionVector();
      rows += vector == null ? 0 : vector.cardinality();
      if (rows > atMost) {
        return null;
      }
      found.add(vector == null ? new long[0] : StoredBitmap.create(vector, log.dataPath()).load(store).toArray());
    }
    return new HiddenRows(found.toArray(new long[0][]));
  }

  /** Writes a vector of these positions, a JSON array, in a file of its own; returns its descriptor as JSON. */
  public static String write(DeltaLog log, Configuration conf, String positions) throws IOException {
    RoaringBitmapArray rows = new RoaringBitmapArray();
    for (long position : JsonUtils.mapper().readValue(positions, long[].class)) {
      rows.add(position);
    }
    rows.runOptimize();
    byte[] body = rows.serializeAsByteArray(RoaringBitmapArrayFormat.Portable());
    DeletionVectorStore store = DeletionVectorStore$.MODULE$.createInstance(conf);
    UUID id = UUID.randomUUID();
    PathWithFileSystem file = store.generateFileNameInTable(store.pathWithFileSystem(log.dataPath()), id, "");
    try (DeletionVectorStoreUtils.Writer writer = store.createWriter(file)) {
      int offset = writer.write(body).offset();
      return JsonUtils.mapper().writeValueAsString(DeletionVectorDescriptor.onDiskWithRelativePath(
          id, "", body.length, rows.cardinality(), Option.apply((Object) offset), Option.empty()));
    }
  }
}
