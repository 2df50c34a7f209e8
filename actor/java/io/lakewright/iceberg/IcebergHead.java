package io.lakewright.iceberg;

import java.io.IOException;
import java.io.StringWriter;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotParser;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.shaded.com.fasterxml.jackson.core.JsonGenerator;
import org.apache.iceberg.shaded.com.fasterxml.jackson.core.filter.FilteringGeneratorDelegate;
import org.apache.iceberg.shaded.com.fasterxml.jackson.core.filter.TokenFilter;
import org.apache.iceberg.util.JsonUtil;

/** The metadata of tables as what changed in them: they list every snapshot, and a job asks for them several times. */
public final class IcebergHead {
  private static final int TABLES = 64; // Twice those that Python keeps: slots may ask by the metadata before.
  private static final List HISTORY = Arrays.asList(new Object[] {
      "snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics"}); // What grows with a table.
  private static final Map KNOWN = Collections.synchronizedMap(new Recent()); // The ids of snapshots by identity.

  private IcebergHead() {}

  /**
   * Returns the metadata of a table as they were last read, for a caller that has those of this identity: the empty
   * string if they are the same; otherwise JSON of their `identity`, which is empty if nothing distinguishes them from
   * others at their place, the path of their `file`, the `metadata` without their history, the `snapshots` that are new,
   * and the ids of those that are `gone`. `whole`: all snapshots are new.
   */
  public static String since(HasTableOperations table, String identity) throws IOException {
    TableMetadata current = table.operations().current();
    String file = current.metadataFileLocation() == null ? "" : current.metadataFileLocation();
    String now = file.isEmpty() ? "" : current.uuid() + " " + current.lastUpdatedMillis() + " " + file;
    if (!now.isEmpty() && now.equals(identity)) {
      return "";
    }
    Set before = (Set) KNOWN.get(identity);
    StringWriter text = new StringWriter();
    JsonGenerator out = JsonUtil.factory().createGenerator(text);
    out.writeStartObject();
    out.writeStringField("identity", now);
    out.writeStringField("file", file);
    out.writeBooleanField("whole", before == null);
    out.writeFieldName("metadata");
    TableMetadataParser.toJson(
        current, new FilteringGeneratorDelegate(out, new Present(), TokenFilter.Inclusion.INCLUDE_ALL_AND_PATH, true));
    writeSnapshots(out, current, now, before == null ? Collections.EMPTY_SET : before);
    out.writeEndObject();
    out.close();
    return text.toString();
  }

  private static void writeSnapshots(JsonGenerator out, TableMetadata current, String identity, Set before)
      throws IOException {
    Set ids = new HashSet();
    out.writeArrayFieldStart("snapshots");
    for (Iterator one = current.snapshots().iterator(); one.hasNext(); ) {
      Snapshot snapshot = (Snapshot) one.next();
      ids.add(Long.valueOf(snapshot.snapshotId()));
      if (!before.contains(Long.valueOf(snapshot.snapshotId()))) {
        out.writeRawValue(SnapshotParser.toJson(snapshot, false));
      }
    }
    out.writeEndArray();
    out.writeArrayFieldStart("gone");
    for (Iterator one = before.iterator(); one.hasNext(); ) {
      Long id = (Long) one.next();
      if (!ids.contains(id)) {
        out.writeNumber(id.longValue());
      }
    }
    out.writeEndArray();
    if (!identity.isEmpty()) {
      KNOWN.put(identity, ids);
    }
  }

  /** Leaves out what grows with the number of commits. */
  private static final class Present extends TokenFilter {
    public TokenFilter includeProperty(String name) {
      return HISTORY.contains(name) ? null : TokenFilter.INCLUDE_ALL;
    }
  }

  /** A map that forgets what was used longest ago. */
  private static final class Recent extends LinkedHashMap {
    private static final long serialVersionUID = 1L;

    Recent() {
      super(TABLES, 0.75f, true);
    }

    protected boolean removeEldestEntry(Map.Entry eldest) {
      return size() > TABLES;
    }
  }
}
