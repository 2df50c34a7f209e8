package io.lakewright.parquet;

import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.parquet.format.BloomFilterHeader;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.ColumnMetaData;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.OffsetIndex;
import org.apache.parquet.format.PageHeader;
import org.apache.parquet.format.PageLocation;
import org.apache.parquet.format.RowGroup;
import org.apache.parquet.format.Util;

/**
 * Joins Parquet files of one schema by copying their row groups as bytes, as one task.
 *
 * <p>Pages are neither unpacked nor decoded, but each chunk is walked page by page, so that what is copied is whole.
 * Everything that writers left beside the pages comes along: bounds with their exactness, sizes, column indexes, offset
 * indexes and bloom filters; offsets are moved, and nothing else is changed. parquet-java's own `appendFile` loses all
 * of these but the bounds.
 */
public final class RowGroupCopy extends ParquetTask {
  private static final long serialVersionUID = 1L;

  private static final int BLOOM_HEADER_BYTES = 64; // More than a header has.
  private static final int MAX_ORDINAL = 32767; // Of a row group, which the format keeps in 16 bits.
  private static final byte[] MAGIC = "PAR1".getBytes(StandardCharsets.ISO_8859_1);

  private final long endBytes; // An output of this size or more is not wanted; 0: any is.
  private transient ParquetColumns footers; // Those of the inputs, where they were read in this JVM; null: not.

  public RowGroupCopy(
      ParquetStore store, ArrayList files, ArrayList sizes, String prefix, String suffix, long endBytes) {
    super(store, files, sizes, prefix, suffix);
    this.endBytes = endBytes;
  }

  /** Takes footers that were read to choose how to write; an executor, which has none of them, reads its own. */
  public void use(ParquetColumns read) {
    footers = read;
  }

  void write(Outputs outputs) throws IOException {
    outputs.wrote(0, copy(outputs.create(0)));
  }

  private Written copy(OutputStream created) throws IOException {
    Joined joined = new Joined(created, inputBytes());
    for (int i = 0; i < inputs(); i++) {
      append(joined, i);
    }
    FileMetaData metadata = joined.finish();
    if (endBytes > 0 && joined.position >= endBytes) {
      throw new NotCopyable("full"); // Longer offsets in its footer made it a full file.
    }
    return new Written(joined.position, metadata.getNum_rows(), metadata.getRow_groupsSize());
  }

  private void append(Joined joined, int input) throws IOException {
    String file = file(input);
    long size = size(input);
    ParquetFooter known = footers == null ? null : footers.take(input);
    FSDataInputStream in = open(file, size);
    try {
      joined.append(new ParquetInput(file, in, size), known == null ? ParquetFooter.read(in, size) : known);
    } catch (EOFException cut) {
      throw new DamagedInput(file + " ends before its data do: restore it from a backup, or delete its rows");
    } catch (IOException problem) {
      throw ParquetFooter.isMalformed(problem) ? new NotCopyable("damaged") : problem;
    } finally {
      in.close();
    }
  }

  /** The output while it grows. */
  private static final class Joined {
    private final OutputStream out;
    private final byte[] buffer;
    private final List rowGroups = new ArrayList();
    private final List withColumnIndex = new ArrayList(); // Chunks whose index offset is still relative to its block.
    private final List withOffsetIndex = new ArrayList();
    private final ByteArrayOutputStream columnIndexes = new ByteArrayOutputStream();
    private final ByteArrayOutputStream offsetIndexes = new ByteArrayOutputStream();
    private FileMetaData first;
    private long rows;
    long position;

    Joined(OutputStream out, long inputBytes) throws IOException {
      this.buffer = new byte[ParquetInput.bufferBytes(inputBytes)];
      this.out = new BufferedOutputStream(out, buffer.length);
      write(MAGIC, MAGIC.length);
    }

    private void write(byte[] bytes, int length) throws IOException {
      out.write(bytes, 0, length);
      position += length;
    }

    void append(ParquetInput source, ParquetFooter footer) throws IOException {
      if (first == null) {
        first = footer.metadata;
      } else if (!first.getSchema().equals(footer.metadata.getSchema())) {
        throw new NotCopyable("schema");
      }
      List moves = new ArrayList(); // The chunks, and by how many bytes the pages of each moved.
      for (int i = 0; i < footer.metadata.getRow_groupsSize(); i++) {
        append(source, (RowGroup) footer.metadata.getRow_groups().get(i), moves);
      }
      ParquetInput.Rest rest = source.rest(footer.start);
      for (int i = 0; i < moves.size(); i += 2) {
        ColumnChunk chunk = (ColumnChunk) moves.get(i);
        bloomFilter(rest, chunk.getMeta_data());
        indexes(rest, chunk, ((Long) moves.get(i + 1)).longValue());
      }
      rows += footer.metadata.getNum_rows();
    }

    private void append(ParquetInput source, RowGroup group, List moves) throws IOException {
      for (int i = 0; i < group.getColumnsSize(); i++) {
        ColumnChunk chunk = (ColumnChunk) group.getColumns().get(i);
        ColumnMetaData metadata = chunk.getMeta_data();
        long moved = position - ParquetFooter.start(metadata);
        if (i == 0) {
          group.setFile_offset(position); // Computed, not moved: some writers got it wrong (PARQUET-2078).
        }
        pages(source, metadata);
        metadata.setData_page_offset(metadata.getData_page_offset() + moved);
        if (metadata.isSetDictionary_page_offset() && metadata.getDictionary_page_offset() > 0) {
          metadata.setDictionary_page_offset(metadata.getDictionary_page_offset() + moved);
        }
        if (metadata.isSetIndex_page_offset()) {
          metadata.setIndex_page_offset(metadata.getIndex_page_offset() + moved);
        }
        if (chunk.getFile_offset() != 0) {
          chunk.setFile_offset(metadata.getData_page_offset()); // Deprecated, and what parquet-java writes there.
        }
        moves.add(chunk);
        moves.add(Long.valueOf(moved));
      }
      if (rowGroups.size() <= MAX_ORDINAL) {
        group.setOrdinal((short) rowGroups.size());
      } else {
        group.setOrdinalIsSet(false);
      }
      rowGroups.add(group);
    }

    /**
     * Copies a chunk page by page; throws NotCopyable unless its pages fill it exactly and hold all of its values, and
     * DamagedInput if a page differs from its checksum, which its writer may have left out.
     */
    private void pages(ParquetInput source, ColumnMetaData chunk) throws IOException {
      long left = chunk.getTotal_compressed_size();
      long values = 0;
      source.seek(ParquetFooter.start(chunk));
      CRC32 crc = new CRC32();
      while (left > 0) {
        ParquetInput.checkCancelled();
        source.header.reset();
        PageHeader page = Util.readPageHeader(source);
        byte[] header = source.header.toByteArray();
        left -= header.length + (long) page.getCompressed_page_size();
        if (page.getCompressed_page_size() < 0 || left < 0) {
          throw new NotCopyable("damaged");
        }
        write(header, header.length);
        crc.reset();
        source.copy(page.getCompressed_page_size(), out, buffer, crc);
        position += page.getCompressed_page_size();
        if (page.isSetCrc() && page.getCrc() != (int) crc.getValue()) {
          throw new DamagedInput(source.file + " has a page that ends at byte " + source.position()
              + " and differs from its checksum: restore the file from a backup, or delete its rows");
        }
        values += page.isSetData_page_header() ? page.getData_page_header().getNum_values() : 0;
        values += page.isSetData_page_header_v2() ? page.getData_page_header_v2().getNum_values() : 0;
      }
      if (values != chunk.getNum_values()) {
        throw new NotCopyable("damaged");
      }
    }

    private void indexes(ParquetInput.Rest in, ColumnChunk chunk, long moved) throws IOException {
      if (chunk.isSetColumn_index_offset() && chunk.isSetColumn_index_length()) {
        byte[] index = in.bytes(chunk.getColumn_index_offset(), chunk.getColumn_index_length());
        chunk.setColumn_index_offset(columnIndexes.size());
        columnIndexes.write(index);
        withColumnIndex.add(chunk);
      }
      if (chunk.isSetOffset_index_offset() && chunk.isSetOffset_index_length()) {
        byte[] bytes = in.bytes(chunk.getOffset_index_offset(), chunk.getOffset_index_length());
        OffsetIndex index = Util.readOffsetIndex(new ByteArrayInputStream(bytes));
        for (int i = 0; i < index.getPage_locationsSize(); i++) {
          PageLocation page = (PageLocation) index.getPage_locations().get(i);
          page.setOffset(page.getOffset() + moved);
        }
        int before = offsetIndexes.size();
        Util.writeOffsetIndex(index, offsetIndexes);
        chunk.setOffset_index_offset(before);
        chunk.setOffset_index_length(offsetIndexes.size() - before);
        withOffsetIndex.add(chunk);
      }
    }

    private void bloomFilter(ParquetInput.Rest in, ColumnMetaData chunk) throws IOException {
      if (!chunk.isSetBloom_filter_offset()) {
        return;
      }
      int length;
      if (chunk.isSetBloom_filter_length()) {
        length = chunk.getBloom_filter_length();
      } else { // Older writers leave it out: the filter's own header knows.
        byte[] start = in.bytesUpTo(chunk.getBloom_filter_offset(), BLOOM_HEADER_BYTES);
        ByteArrayInputStream left = new ByteArrayInputStream(start);
        BloomFilterHeader header = Util.readBloomFilterHeader(left);
        length = start.length - left.available() + header.getNumBytes();
      }
      byte[] filter = in.bytes(chunk.getBloom_filter_offset(), length);
      chunk.setBloom_filter_offset(position);
      write(filter, length);
    }

    /** Writes the indexes, all together as readers fetch them, and the footer. */
    FileMetaData finish() throws IOException {
      for (int i = 0; i < withColumnIndex.size(); i++) {
        ColumnChunk chunk = (ColumnChunk) withColumnIndex.get(i);
        chunk.setColumn_index_offset(chunk.getColumn_index_offset() + position);
      }
      write(columnIndexes.toByteArray(), columnIndexes.size());
      for (int i = 0; i < withOffsetIndex.size(); i++) {
        ColumnChunk chunk = (ColumnChunk) withOffsetIndex.get(i);
        chunk.setOffset_index_offset(chunk.getOffset_index_offset() + position);
      }
      write(offsetIndexes.toByteArray(), offsetIndexes.size());
      FileMetaData metadata = first;
      metadata.setRow_groups(rowGroups);
      metadata.setNum_rows(rows);
      ByteArrayOutputStream footer = new ByteArrayOutputStream();
      Util.writeFileMetaData(metadata, footer);
      int length = footer.size();
      write(footer.toByteArray(), length);
      write(new byte[] {(byte) length, (byte) (length >> 8), (byte) (length >> 16), (byte) (length >> 24)}, 4);
      write(MAGIC, MAGIC.length);
      out.flush();
      return metadata;
    }
  }
}
