package io.lakewright.delta;

import io.lakewright.spark.Json;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.commons.io.IOUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.delta.actions.Protocol;
import org.apache.spark.sql.delta.util.FileNames;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/** A snapshot that follows from the one before it by what the commits since changed, without a Spark job. */
public final class NextSnapshot {
  private static final Option NONE = Option.empty();
  private static final int MAX_BYTES = 16 << 20; // Of commits read at once: some 16,000 actions. Delta's job reads others.

  private NextSnapshot() {}

  /**
   * Reads the commits since a snapshot: a line of JSON that describes them, and the bytes of all, one behind the other;
   * in Base64, because Python takes ten times as long for bytes as for a text.
   *
   * <p>The next commit is asked for by its name until there is none. A listing would go over the whole folder where a
   * store cannot begin in the middle of it.
   *
   * @param digest that of the snapshot's own commit, compared when the others are read: logs are cleaned up from their
   *     beginning, so that a log which still has it has all that follow
   * @param atMost commits to read; if there are more of them, or of their bytes, `is_known` is false
   * @param isRecent whether the snapshot is that of a moment ago; if not, a clean-up may be under way, in any order, and
   *     the log is listed
   */
  public static String since(
      Configuration conf, DeltaLog log, Snapshot before, String digest, int atMost, boolean isRecent)
      throws IOException {
    long known = before.version();
    long last = isRecent ? Long.MAX_VALUE : listed(log, before);
    FileSystem store = log.logPath().getFileSystem(conf);
    List commits = new ArrayList();
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    boolean isWhole = true;
    while (isWhole && known + commits.size() < last) {
      Path path = FileNames.unsafeDeltaFile(log.logPath(), known + commits.size() + 1);
      InputStream in = CommitFile.open(store, path);
      if (in == null) {
        isWhole = isRecent;
        break;
      }
      try {
        FileStatus status = store.getFileStatus(path);
        isWhole = commits.size() < atMost && all.size() + status.getLen() <= MAX_BYTES;
        if (isWhole) {
          byte[] bytes = IOUtils.toByteArray(in);
          all.write(bytes);
          commits.add(described(bytes, status.getModificationTime()));
        }
      } finally {
        in.close();
      }
    }
    boolean isKnown = isWhole && digest.equals(CommitFile.digest(conf, log.logPath().toString(), known));
    Map described = new HashMap();
    described.put("commits", commits);
    described.put("is_known", Boolean.valueOf(isKnown));
    ByteArrayOutputStream answer = new ByteArrayOutputStream();
    answer.write((Json.text(described) + "\n").getBytes(StandardCharsets.UTF_8));
    all.writeTo(answer);
    return Base64.getEncoder().encodeToString(answer.toByteArray());
  }

  private static Map described(byte[] commit, long modifiedMs) {
    Map described = new HashMap();
    described.put("digest", DigestUtils.sha256Hex(commit));
    described.put("bytes", Integer.valueOf(commit.length));
    described.put("modified_ms", Long.valueOf(modifiedMs));
    return described;
  }

  private static long listed(DeltaLog log, Snapshot before) {
    return ((LogSegment) log.getUpdatedLogSegment(before.logSegment(), NONE, NONE)._1()).version();
  }

  /**
   * Returns the snapshot after commits that `since` has described, with the checksum of the one before changed by this
   * many live files and their bytes. It holds what is known of each version: size, number of files, metadata, protocol,
   * and domains, none of which these commits change.
   */
  public static Snapshot carried(DeltaLog log, Snapshot before, String described, long files, long bytes)
      throws IOException {
    VersionChecksum known = (VersionChecksum) before.checksumOpt().get();
    VersionChecksum checksum =
        checksum(
            known.tableSizeBytes() + bytes,
            known.numFiles() + files,
            known.domainMetadata(),
            known.metadata(),
            known.protocol());
    return log.createSnapshot(segment(log, before, described), NONE, NONE, new Some(checksum));
  }

  private static LogSegment segment(DeltaLog log, Snapshot before, String described) throws IOException {
    LogSegment known = before.logSegment();
    List commits = (List) Json.object(described).get("commits");
    List deltas = new ArrayList(CollectionConverters.asJava(known.deltas()));
    long modified = 0;
    for (int i = 0; i < commits.size(); i++) {
      Map commit = (Map) commits.get(i);
      Path path = FileNames.unsafeDeltaFile(log.logPath(), known.version() + i + 1);
      modified = ((Number) commit.get("modified_ms")).longValue();
      deltas.add(new FileStatus(((Number) commit.get("bytes")).longValue(), false, 1, 1, modified, path));
    }
    return new LogSegment(
        log.logPath(), known.version() + commits.size(), PythonUtils.toSeq(deltas), known.checkpointProvider(), modified);
  }

  /**
   * Returns a snapshot of the same files with other metadata, to read and write files by. It knows no size, and is never
   * committed on.
   */
  public static Snapshot described(DeltaLog log, Snapshot snapshot, Metadata metadata) {
    VersionChecksum checksum = checksum(0L, 0L, NONE, metadata, snapshot.protocol());
    Snapshot found = log.createSnapshot(snapshot.logSegment(), NONE, NONE, new Some(checksum));
    if (!found.metadata().equals(metadata)) {
      throw new IllegalStateException("Delta ignores the metadata that files are to be read by");
    }
    return found;
  }

  /** Returns the checksum of a version of which this is known; `domains`: its domain metadata, if it was read. */
  static VersionChecksum checksum(long bytes, long files, Option domains, Metadata metadata, Protocol protocol) {
    return new VersionChecksum(
        NONE, // txnId
        bytes,
        files,
        NONE, // numDeletedRecordsOpt
        NONE, // numDeletionVectorsOpt
        1L, // numMetadata
        1L, // numProtocol
        NONE, // inCommitTimestampOpt
        NONE, // setTransactions
        domains,
        metadata,
        protocol,
        NONE, // histogramOpt
        NONE, // deletedRecordCountsHistogramOpt
        NONE, // allFiles
        NONE); // The rest.
  }
}
