package io.lakewright.parquet;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.functional.FutureIO;
import org.apache.spark.util.SerializableConfiguration;

/** Files of Hadoop's file systems; outputs go into one folder. */
public final class HadoopStore extends ParquetStore {
  private static final long serialVersionUID = 1L;

  private final SerializableConfiguration configuration;
  private final String folder;

  public HadoopStore(Configuration configuration, String folder) {
    this.configuration = new SerializableConfiguration(configuration);
    this.folder = folder;
  }

  /** Returns its configuration, which a task with settings of its own has once with it. */
  public SerializableConfiguration settings() {
    return configuration;
  }

  protected FSDataInputStream open(String file, long size) throws IOException {
    return open(configuration.value(), file, size);
  }

  static FSDataInputStream open(Configuration configuration, String file, long size) throws IOException {
    Path path = new Path(file);
    FutureDataInputStreamBuilder builder = path.getFileSystem(configuration).openFile(path);
    builder.optLong("fs.option.openfile.length", size);
    return FutureIO.awaitFuture(builder.build());
  }

  protected String place(String name) {
    return new Path(folder, name).toString();
  }

  /** On a local disk without Hadoop, which starts a process to set the file's mode. */
  protected OutputStream create(String file) throws IOException {
    Path target = new Path(file);
    FileSystem store = target.getFileSystem(configuration.value());
    if (!"file".equals(store.getUri().getScheme())) {
      return store.create(target, false);
    }
    java.nio.file.Path local = Paths.get(target.toUri().getPath(), new String[0]);
    Files.createDirectories(local.getParent(), new FileAttribute[0]);
    return Files.newOutputStream(local, new OpenOption[] {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE});
  }

  protected void delete(String file) throws IOException {
    Path target = new Path(file);
    target.getFileSystem(configuration.value()).delete(target, false);
  }
}
