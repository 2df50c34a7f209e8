package io.lakewright;

import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import org.apache.hadoop.fs.FSDataInputStream;

/** Where a task reads its inputs and creates its output; sent to executors with the task. */
public abstract class ParquetStore implements Serializable {
  /** Opens a file whose size is known, which spares asking the store for it. */
  abstract FSDataInputStream open(String file, long size) throws IOException;

  /** Returns where a file of this name is to be created. */
  abstract String place(String name);

  /** Creates a file that must not exist. */
  abstract OutputStream create(String file) throws IOException;

  /** Deletes a file that may not exist. */
  abstract void delete(String file) throws IOException;

  /** Ends what this copy of the object holds; called by the task that it was sent with. */
  void close() {}
}
