package io.lakewright.parquet;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.fs.FSDataInputStream;

/**
 * Files of another store, and nowhere to write to: a copy into it walks all pages of its inputs and leaves nothing.
 *
 * <p>So damaged pages are found before rows are decoded, by readers that look at no checksum.
 */
public final class PageCheck extends ParquetStore {
  private static final long serialVersionUID = 1L;

  private final ParquetStore store;

  public PageCheck(ParquetStore store) {
    this.store = store;
  }

  protected FSDataInputStream open(String file, long size) throws IOException {
    return store.open(file, size);
  }

  protected String place(String name) {
    return name;
  }

  protected OutputStream create(String file) {
    return OutputStream.nullOutputStream();
  }

  protected void delete(String file) {}

  protected void close() {
    store.close();
  }
}
