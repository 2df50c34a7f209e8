package io.lakewright.delta;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.AWSServiceIOException;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;

/**
 * Delta's commits on S3, safe among all writers whose commits are conditional, too.
 *
 * <p>Delta's own store for S3 looks whether the commit exists and then puts it: two processes replace each other's
 * commits without a trace. S3 itself refuses a PUT with If-None-Match where an object exists. A refusal may be the echo
 * of our own PUT whose answer was lost and which the client repeated, so each commit carries an id of its writing, and
 * only a commit with another id belongs to another writer.
 */
public final class ConditionalPutLogStore extends S3SingleDriverLogStore {
  private static final String CONDITION = "fs.option.create.conditional.overwrite";
  private static final String MARK = "lakewright-write-id";
  private static final int CONFLICT = 409;
  private static final int PRECONDITION_FAILED = 412;

  public ConditionalPutLogStore(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration) throws IOException {
    if (overwrite.booleanValue()) {
      super.write(path, actions, overwrite, configuration);
      return;
    }
    FileSystem files = path.getFileSystem(configuration);
    if (!files.hasPathCapability(path, CONDITION)) {
      throw new IOException(path + ": this file system cannot put conditionally; is fs.s3a.create.conditional.enabled off?");
    }
    byte[] mark = UUID.randomUUID().toString().getBytes(StandardCharsets.UTF_8);
    FSDataOutputStream stream = open(files, path, new String(mark, StandardCharsets.UTF_8));
    try {
      while (actions.hasNext()) {
        stream.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
      }
    } catch (Throwable failure) {
      stream.abort(); // Closing would publish half a commit.
      throw failure;
    }
    try {
      stream.close();
    } catch (InterruptedIOException failure) {
      throw failure;
    } catch (IOException failure) {
      judge(files, path, mark, failure);
    }
  }

  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return Boolean.FALSE;
  }

  private static FSDataOutputStream open(FileSystem files, Path path, String mark) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path);
    builder.create();
    builder.overwrite(true); // No look beforehand: the condition decides.
    builder.recursive();
    builder.must(CONDITION, "true");
    builder.must("fs.s3a.create.header." + MARK, mark);
    return builder.build();
  }

  /** Return if the commit is ours in spite of the failure; otherwise throw the winner, or that it is unknown. */
  private static void judge(FileSystem files, Path path, byte[] mark, IOException failure) throws IOException {
    boolean exists = true;
    try {
      if (Arrays.equals(mark, files.getXAttr(path, "header." + MARK))) {
        return;
      }
    } catch (FileNotFoundException absent) {
      exists = false;
    } catch (IOException unseen) {
      failure.addSuppressed(unseen);
      throw failure;
    }
    if (exists && isRefusal(failure)) {
      FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
      taken.initCause(failure);
      throw taken;
    }
    throw failure;
  }

  private static boolean isRefusal(IOException failure) {
    if (failure instanceof AWSServiceIOException refusal) {
      int status = refusal.statusCode();
      return status == CONFLICT || status == PRECONDITION_FAILED;
    }
    return failure instanceof RemoteFileChangedException;
  }
}
