package io.lakewright;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Data files of a table in its store, and the room for more. */
public final class DataFiles {
  private static final long NO_LIMIT = -1;

  private DataFiles() {}

  /** Returns the sizes in bytes of the files of a JSON array of paths, as such an array; null for one that is missing. */
  public static String sizes(Configuration configuration, String paths) throws IOException {
    List sizes = new ArrayList();
    List files = Json.array(paths);
    for (int i = 0; i < files.size(); i++) {
      Path path = new Path((String) files.get(i));
      try {
        sizes.add(Long.valueOf(path.getFileSystem(configuration).getFileStatus(path).getLen()));
      } catch (FileNotFoundException missing) {
        sizes.add(null);
      }
    }
    return Json.text(sizes);
  }

  /**
   * Returns the bytes that may still be written to the disk of this folder, -1 where it is on no local disk. Hadoop's own
   * `getStatus` counts what is reserved for the administrator, too.
   */
  public static long freeBytes(Configuration configuration, String folder) throws IOException {
    Path path = new Path(folder);
    FileSystem files = path.getFileSystem(configuration);
    return files.getScheme().equals("file") ? new File(path.toUri().getPath()).getUsableSpace() : NO_LIMIT;
  }
}
