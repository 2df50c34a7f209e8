package io.lakewright;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.PrimitiveComparator;

/** Bounds of columns of one file, over all of its row groups, as parquet-java believes its writer's statistics. */
public final class ParquetBounds {
  private ParquetBounds() {}

  /**
   * Returns for each of these leaf columns a map of `least` and `greatest` (left out if all values are null) as text,
   * bytes in Base64, and of `nulls`; null for a column whose bounds some row group leaves out.
   */
  public static List of(Configuration configuration, String file, long size, List leaves) throws IOException {
    FSDataInputStream in = HadoopStore.open(configuration, file, size);
    List blocks;
    try {
      blocks = new ParquetMetadataConverter(configuration)
          .fromParquetMetadata(ParquetFooter.read(in, size).metadata)
          .getBlocks();
    } finally {
      in.close();
    }
    List bounds = new ArrayList();
    for (int i = 0; i < leaves.size(); i++) {
      bounds.add(of(blocks, ((Number) leaves.get(i)).intValue()));
    }
    return bounds;
  }

  private static HashMap of(List blocks, int leaf) {
    Object least = null;
    Object greatest = null;
    long nulls = 0;
    for (int i = 0; i < blocks.size(); i++) {
      ColumnChunkMetaData chunk = (ColumnChunkMetaData) ((BlockMetaData) blocks.get(i)).getColumns().get(leaf);
      Statistics statistics = chunk.getStatistics();
      if (statistics == null || statistics.isEmpty() || !statistics.isNumNullsSet()) {
        return null;
      }
      nulls += statistics.getNumNulls();
      if (statistics.hasNonNullValue()) {
        PrimitiveComparator order = chunk.getPrimitiveType().comparator();
        Object low = statistics.genericGetMin();
        Object high = statistics.genericGetMax();
        least = least == null || order.compare(low, least) < 0 ? low : least;
        greatest = greatest == null || order.compare(high, greatest) > 0 ? high : greatest;
      } else if (statistics.getNumNulls() != chunk.getValueCount()) {
        return null;
      }
    }
    if (blocks.isEmpty()) {
      return null;
    }
    HashMap found = new HashMap();
    found.put("nulls", Long.valueOf(nulls));
    if (least != null) {
      found.put("least", text(least));
      found.put("greatest", text(greatest));
    }
    return found;
  }

  private static String text(Object value) {
    if (value instanceof Binary) {
      return Base64.getEncoder().encodeToString(((Binary) value).getBytes());
    }
    if (value instanceof Float) {
      return Double.toString(((Float) value).doubleValue());
    }
    return String.valueOf(value);
  }
}
