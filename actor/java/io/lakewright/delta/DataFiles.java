package io.lakewright.delta;

import io.lakewright.spark.Json;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Data files of a table in its store. */
public final class DataFiles {
  private DataFiles() {}

  /** Returns the sizes in bytes of the files of a JSON array of paths, as such an array; null for one that is missing. */
  public static String sizes(Configuration configuration, String paths) throws IOException {
    List<Long> sizes = new ArrayList<>();
    for (String file : Json.texts(paths)) {
      Path path = new Path(file);
      try {
        sizes.add(path.getFileSystem(configuration).getFileStatus(path).getLen());
      } catch (FileNotFoundException missing) {
        sizes.add(null);
      }
    }
    return Json.text(sizes);
  }
}
