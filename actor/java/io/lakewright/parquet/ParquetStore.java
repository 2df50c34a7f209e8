package io.lakewright.parquet;

import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import org.apache.hadoop.fs.FSDataInputStream;

/** Where a task reads its inputs and creates its output; sent to executors with the task. */
public abstract class ParquetStore implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Opens a file whose size is known, which spares asking the store for it. */
  protected abstract FSDataInputStream open(String file, long size) throws IOException;

  /** Returns where a file of this name is to be created. */
  protected abstract String place(String name);

  /** Creates a file that must not exist. */
  protected abstract OutputStream create(String file) throws IOException;

  /** Deletes a file that may not exist. */
  protected abstract void delete(String file) throws IOException;

  /** Ends what this copy of the object holds; called by the task that it was sent with. */
  protected void close() {}
}
