package io.lakewright.delta;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.commons.io.IOUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Reads single commits of a Delta log: one call from Python for each, where a dozen cost more than the file itself. */
public final class CommitFile {
  private CommitFile() {}

  /** Returns the SHA-256 of a commit's bytes as 64 hexadecimal digits; null if there is no such commit. */
  public static String digest(Configuration configuration, String folder, long version) throws IOException {
    InputStream in = open(configuration, folder, version);
    if (in == null) {
      return null;
    }
    try {
      return DigestUtils.sha256Hex(in);
    } finally {
      in.close();
    }
  }

  /** Returns the digest, and right behind it the text that it belongs to; null if there is no such commit. */
  public static String read(Configuration configuration, String folder, long version) throws IOException {
    InputStream in = open(configuration, folder, version);
    if (in == null) {
      return null;
    }
    try {
      byte[] bytes = IOUtils.toByteArray(in);
      return DigestUtils.sha256Hex(bytes) + new String(bytes, StandardCharsets.UTF_8);
    } finally {
      in.close();
    }
  }

  private static InputStream open(Configuration configuration, String folder, long version) throws IOException {
    Path path = new Path(folder, String.format(Locale.ROOT, "%020d.json", new Object[] {Long.valueOf(version)}));
    return open(path.getFileSystem(configuration), path);
  }

  /** Opens a commit, null if there is none: a store is not asked beforehand whether there is. */
  static InputStream open(FileSystem store, Path path) throws IOException {
    try {
      return store.open(path);
    } catch (FileNotFoundException none) {
      return null;
    }
  }
}
