package io.lakewright.parquet;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.util.functional.FutureIO;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.ColumnMetaData;
import org.apache.parquet.format.Encoding;
import org.apache.parquet.format.FieldRepetitionType;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.KeyValue;
import org.apache.parquet.format.LogicalType;
import org.apache.parquet.format.PageEncodingStats;
import org.apache.parquet.format.PageType;
import org.apache.parquet.format.RowGroup;
import org.apache.parquet.format.SchemaElement;
import org.apache.parquet.format.Type;
import org.apache.parquet.format.Util;

/**
 * The footer of one Parquet file in the format's own structures, and what of it decides whether files can be joined.
 *
 * <p>Not in those of parquet-java, which keep less than they read: whether bounds are exact, sizes of columns, where
 * indexes and bloom filters lie.
 */
public final class ParquetFooter {
  private static final int TAIL_BYTES = 1 << 16; // Read at first: holds most footers, so that they take one request.
  private static final int END_BYTES = 8; // Length of the footer, and the magic bytes.
  private static final String MAGIC = "PAR1";
  private static final String SPARK = "org.apache.spark.version"; // A key that Spark's writer leaves since 2.4.

  final FileMetaData metadata;
  final long start; // Where the footer begins, in bytes: all data lie before.

  private ParquetFooter(FileMetaData metadata, long start) {
    this.metadata = metadata;
    this.start = start;
  }

  /** Reads the footer; throws NotCopyable for a file that has none which can be read without a key. */
  static ParquetFooter read(FSDataInputStream in, long size) throws IOException {
    int length = (int) Math.min(size, TAIL_BYTES);
    byte[] tail = tail(in, size, length);
    String magic = length < END_BYTES ? "" : new String(tail, length - 4, 4, StandardCharsets.ISO_8859_1);
    if (!magic.equals(MAGIC)) {
      throw new NotCopyable(magic.equals("PARE") ? "encryption" : "no_footer");
    }
    long footer = (tail[length - 8] & 255L) | (tail[length - 7] & 255L) << 8 | (tail[length - 6] & 255L) << 16
        | (tail[length - 5] & 255L) << 24;
    if (footer + END_BYTES + MAGIC.length() > size) {
      throw new NotCopyable("no_footer");
    }
    if (footer + END_BYTES > length) {
      length = (int) (footer + END_BYTES);
      tail = tail(in, size, length);
    }
    int from = (int) (length - END_BYTES - footer);
    FileMetaData metadata = Util.readFileMetaData(new ByteArrayInputStream(tail, from, (int) footer));
    return new ParquetFooter(metadata, size - END_BYTES - footer);
  }

  private static byte[] tail(FSDataInputStream in, long size, int length) throws IOException {
    byte[] bytes = new byte[length];
    in.readFully(size - length, bytes, 0, length);
    return bytes;
  }

  /** Where the pages of a column chunk begin: at its dictionary, if it has one in front of its data. */
  static long start(ColumnMetaData chunk) {
    long dictionary = chunk.isSetDictionary_page_offset() ? chunk.getDictionary_page_offset() : 0;
    return dictionary > 0 && dictionary < chunk.getData_page_offset() ? dictionary : chunk.getData_page_offset();
  }

  /** How many bytes the footer of a file of this size takes. */
  long length(long size) {
    return size - start;
  }

  /** Sees each footer that could be read with its file's number, from several threads; the digest is the schema's. */
  abstract static class Visitor {
    abstract void visit(int number, ParquetFooter footer, long size, String digest) throws IOException;
  }

  /**
   * Reads the footers of files, several at once, and returns for each what decides whether it can be joined to others:
   * a map whose keys are the fields of `FooterSummary` (footer_summary.py). Its `full_ids` are those of these ids of leaf
   * columns that hold no null.
   */
  static List summaries(ParquetStore store, List files, List sizes, int threads, List ids, Visitor visitor)
      throws IOException {
    if (threads <= 1) {
      List summaries = new ArrayList();
      for (int i = 0; i < files.size(); i++) {
        long size = ((Number) sizes.get(i)).longValue();
        summaries.add(new Reading(store, i, (String) files.get(i), size, ids, visitor).summary());
      }
      return summaries;
    }
    ExecutorService pool = Executors.newFixedThreadPool(Math.max(1, Math.min(threads, files.size())));
    try {
      List futures = new ArrayList();
      for (int i = 0; i < files.size(); i++) {
        long size = ((Number) sizes.get(i)).longValue();
        futures.add(pool.submit(new Reading(store, i, (String) files.get(i), size, ids, visitor)));
      }
      List summaries = new ArrayList();
      for (int i = 0; i < futures.size(); i++) {
        summaries.add(FutureIO.awaitFuture((Future) futures.get(i)));
      }
      return summaries;
    } finally {
      pool.shutdownNow();
    }
  }

  private static final class Reading implements Callable {
    private final ParquetStore store;
    private final int number;
    private final String file;
    private final long size;
    private final List ids;
    private final Visitor visitor; // null: no other class needs the footers.

    Reading(ParquetStore store, int number, String file, long size, List ids, Visitor visitor) {
      this.store = store;
      this.number = number;
      this.file = file;
      this.size = size;
      this.ids = ids;
      this.visitor = visitor;
    }

    public Object call() throws Exception {
      return summary();
    }

    Map summary() throws IOException {
      FSDataInputStream in = store.open(file, size);
      try {
        ParquetFooter footer = read(in, size);
        Map summary = footer.summary(ids);
        if (visitor != null && !summary.get("obstacle").equals("damaged")) {
          visitor.visit(number, footer, size, (String) summary.get("schema"));
        }
        return summary;
      } catch (EOFException cut) {
        return onlyObstacle("no_footer"); // The size that was given is not the file's.
      } catch (NotCopyable reason) {
        return onlyObstacle(reason.getMessage());
      } catch (RuntimeException contradictory) {
        return onlyObstacle("damaged"); // Counts and places in the footer that lead beyond what there is.
      } catch (IOException unreadable) {
        if (isMalformed(unreadable)) {
          return onlyObstacle("damaged");
        }
        throw unreadable;
      } finally {
        in.close();
      }
    }
  }

  private static Map onlyObstacle(String reason) {
    Map summary = new HashMap();
    summary.put("obstacle", reason);
    return summary;
  }

  /** Whether bytes could be read and are not what the format has there; otherwise the store failed. */
  static boolean isMalformed(IOException error) {
    Throwable cause = error.getCause();
    return cause != null && cause.getClass().getName().contains("thrift") && !(cause.getCause() instanceof IOException);
  }

  private Map summary(List ids) throws IOException {
    Map summary = new HashMap();
    summary.put("obstacle", obstacle());
    summary.put("schema", schemaDigest());
    summary.put("columns", columnsDigest());
    summary.put("top_level", topLevelNames());
    summary.put("created_by", metadata.isSetCreated_by() ? metadata.getCreated_by() : "");
    TreeMap keyValues = keyValues();
    summary.put("keys", new ArrayList(keyValues.keySet()));
    summary.put("key_values", DigestUtils.sha256Hex(keyValues.toString()));
    String spark = (String) keyValues.get(SPARK);
    summary.put("spark", spark == null ? "" : spark.substring(spark.indexOf(':') + 1));
    summary.put("rows", Long.valueOf(metadata.getNum_rows()));
    summary.put("row_groups", Integer.valueOf(metadata.getRow_groupsSize()));
    long bytes = 0;
    long dictionaries = 0;
    TreeSet[] codecs = new TreeSet[leaves()];
    for (int i = 0; i < codecs.length; i++) {
      codecs[i] = new TreeSet();
    }
    for (int i = 0; i < metadata.getRow_groupsSize(); i++) {
      List chunks = ((RowGroup) metadata.getRow_groups().get(i)).getColumns();
      for (int j = 0; j < chunks.size() && j < codecs.length; j++) {
        ColumnChunk chunk = (ColumnChunk) chunks.get(j);
        if (chunk.isSetMeta_data()) {
          codecs[j].add(chunk.getMeta_data().getCodec().name().toLowerCase());
          bytes += chunk.getMeta_data().getTotal_compressed_size();
          dictionaries += dictionaryBytes(chunk.getMeta_data());
        }
      }
    }
    List named = new ArrayList();
    for (int i = 0; i < codecs.length; i++) {
      named.add(String.join("+", codecs[i]));
    }
    summary.put("codecs", named);
    summary.put("data_bytes", Long.valueOf(bytes));
    summary.put("dictionary_bytes", Long.valueOf(dictionaries));
    summary.put("full_ids", fullIds(ids));
    return summary;
  }

  /** Of these ids of leaf columns, those whose statistics say of every row group that it holds no null. */
  private List fullIds(List ids) {
    List full = new ArrayList();
    int leaf = 0;
    for (int i = 1; i < metadata.getSchemaSize() && !ids.isEmpty(); i++) {
      SchemaElement element = (SchemaElement) metadata.getSchema().get(i);
      if (element.isSetType()) {
        Integer id = Integer.valueOf(element.getField_id());
        if (element.isSetField_id() && ids.contains(id) && isFull(leaf)) {
          full.add(id);
        }
        leaf++;
      }
    }
    return full;
  }

  private boolean isFull(int leaf) {
    for (int i = 0; i < metadata.getRow_groupsSize(); i++) {
      List chunks = ((RowGroup) metadata.getRow_groups().get(i)).getColumns();
      ColumnMetaData chunk = leaf < chunks.size() ? ((ColumnChunk) chunks.get(leaf)).getMeta_data() : null;
      boolean isCounted = chunk != null && chunk.isSetStatistics() && chunk.getStatistics().isSetNull_count();
      if (!isCounted || chunk.getStatistics().getNull_count() != 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Bytes of a dictionary that all pages use, and that other row groups therefore repeat; 0 if its writer gave it up, as
   * it does with values that hardly repeat.
   */
  private static long dictionaryBytes(ColumnMetaData chunk) {
    long bytes = start(chunk) < chunk.getData_page_offset() ? chunk.getData_page_offset() - start(chunk) : 0;
    for (int i = 0; i < chunk.getEncoding_statsSize(); i++) {
      PageEncodingStats pages = (PageEncodingStats) chunk.getEncoding_stats().get(i);
      boolean isData = pages.getPage_type() == PageType.DATA_PAGE || pages.getPage_type() == PageType.DATA_PAGE_V2;
      Encoding encoding = pages.getEncoding();
      if (isData && encoding != Encoding.RLE_DICTIONARY && encoding != Encoding.PLAIN_DICTIONARY) {
        return 0;
      }
    }
    return bytes;
  }

  /** Names what of the file itself forbids to join it to others, the empty string if nothing does. */
  private String obstacle() {
    if (metadata.isSetEncryption_algorithm() || metadata.isSetFooter_signing_key_metadata()) {
      return "encryption";
    }
    for (int i = 0; i < metadata.getSchemaSize(); i++) {
      SchemaElement element = (SchemaElement) metadata.getSchema().get(i);
      LogicalType logical = element.isSetLogicalType() ? element.getLogicalType() : null;
      if (element.isSetType() && element.getType() == Type.INT96) {
        return "int96";
      }
      if (logical != null && logical.isSetTIMESTAMP() && logical.getTIMESTAMP().getUnit().isSetNANOS()) {
        return "nanoseconds";
      }
    }
    long rows = 0;
    int leaves = leaves();
    boolean[] flat = flatLeaves();
    for (int i = 0; i < metadata.getRow_groupsSize(); i++) {
      RowGroup group = (RowGroup) metadata.getRow_groups().get(i);
      rows += group.getNum_rows();
      if (group.getColumnsSize() != leaves) {
        return "damaged";
      }
      for (int j = 0; j < leaves; j++) {
        ColumnChunk chunk = (ColumnChunk) group.getColumns().get(j);
        String found = obstacle(chunk);
        if (!found.isEmpty()) {
          return found;
        }
        if (flat[j] && chunk.getMeta_data().getNum_values() != group.getNum_rows()) {
          return "damaged";
        }
      }
    }
    return rows == metadata.getNum_rows() ? "" : "damaged";
  }

  private String obstacle(ColumnChunk chunk) {
    if (chunk.isSetCrypto_metadata() || chunk.isSetEncrypted_column_metadata()) {
      return "encryption";
    }
    if (chunk.isSetFile_path()) {
      return "data_elsewhere";
    }
    if (!chunk.isSetMeta_data()) {
      return "damaged";
    }
    ColumnMetaData metadata = chunk.getMeta_data();
    long from = start(metadata);
    long length = metadata.getTotal_compressed_size();
    long dictionary = metadata.isSetDictionary_page_offset() ? metadata.getDictionary_page_offset() : 0;
    boolean isInFile = from >= MAGIC.length() && length > 0 && from + length <= start;
    boolean holdsItsPages = metadata.getData_page_offset() < from + length && dictionary < from + length;
    return isInFile && holdsItsPages ? "" : "damaged";
  }

  private int leaves() {
    int leaves = 0;
    for (int i = 0; i < metadata.getSchemaSize(); i++) {
      leaves += ((SchemaElement) metadata.getSchema().get(i)).isSetType() ? 1 : 0;
    }
    return leaves;
  }

  /** Which leaves hold one value, or null, for each row: those below no repeated field. */
  private boolean[] flatLeaves() {
    boolean[] flat = new boolean[leaves()];
    int[] next = {1, 0}; // The element of the schema, whose root is left out, and the leaf.
    while (next[0] < metadata.getSchemaSize()) {
      markFlat(next, true, flat);
    }
    return flat;
  }

  private void markFlat(int[] next, boolean isFlatAbove, boolean[] flat) {
    SchemaElement element = (SchemaElement) metadata.getSchema().get(next[0]);
    boolean isFlat = isFlatAbove && element.getRepetition_type() != FieldRepetitionType.REPEATED;
    next[0]++;
    if (element.isSetType()) {
      flat[next[1]++] = isFlat;
    }
    for (int i = 0; i < element.getNum_children(); i++) {
      markFlat(next, isFlat, flat);
    }
  }

  private List topLevelNames() {
    List names = new ArrayList();
    int next = 1;
    int children = ((SchemaElement) metadata.getSchema().get(0)).getNum_children();
    for (int i = 0; i < children; i++) {
      names.add(((SchemaElement) metadata.getSchema().get(next)).getName());
      next = after(next);
    }
    return names;
  }

  /** The schema lists its tree from the root downwards: returns where the element after this subtree lies. */
  private int after(int element) {
    int next = element + 1;
    int children = ((SchemaElement) metadata.getSchema().get(element)).getNum_children();
    for (int i = 0; i < children; i++) {
      next = after(next);
    }
    return next;
  }

  /** Of all that readers interpret values by: every detail of the schema, the order of values, the format's version. */
  private String schemaDigest() throws IOException {
    return digest(metadata.getVersion(), metadata.getSchema());
  }

  /** Of the same, without what writers spell differently and means nothing: the root, versions, types given twice. */
  private String columnsDigest() throws IOException {
    List elements = new ArrayList();
    for (int i = 0; i < metadata.getSchemaSize(); i++) {
      SchemaElement element = new SchemaElement((SchemaElement) metadata.getSchema().get(i));
      if (i == 0) {
        element = new SchemaElement("").setNum_children(element.getNum_children());
      } else if (element.isSetLogicalType()) {
        element.unsetConverted_type();
      }
      elements.add(element);
    }
    return digest(0, elements);
  }

  private String digest(int version, List schema) throws IOException {
    FileMetaData bare = new FileMetaData(version, schema, 0L, new ArrayList());
    if (metadata.isSetColumn_orders()) {
      bare.setColumn_orders(metadata.getColumn_orders());
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Util.writeFileMetaData(bare, bytes);
    return DigestUtils.sha256Hex(bytes.toByteArray());
  }

  private TreeMap keyValues() {
    TreeMap found = new TreeMap();
    for (int i = 0; i < metadata.getKey_value_metadataSize(); i++) {
      KeyValue one = (KeyValue) metadata.getKey_value_metadata().get(i);
      String value = one.isSetValue() ? one.getValue() : "";
      found.put(one.getKey(), value.length() + ":" + value);
    }
    return found;
  }
}
