package io.lakewright.delta;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Delta's commits on a local or mounted file system, safe between processes.
 *
 * <p>Delta's own store for file: checks that the commit file is absent and then renames over it. A rename replaces, so
 * a commit that another process makes in between is lost without a trace. A hard link either creates its name or fails.
 */
public final class ExclusiveLogStore extends HadoopFileSystemLogStore {
  public ExclusiveLogStore(Configuration configuration) {
    super(configuration);
  }

  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration) throws IOException {
    java.nio.file.Path target = Paths.get(path.toUri().getPath(), new String[0]);
    java.nio.file.Path temporary = target.resolveSibling("." + target.getFileName() + "." + UUID.randomUUID() + ".tmp");
    try {
      writeLines(temporary, actions);
      deleteChecksum(target);
      if (overwrite.booleanValue()) {
        Files.move(temporary, target, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
      } else {
        // Throws FileAlreadyExistsException, by which a log store reports that another writer was first.
        Files.createLink(target, temporary);
      }
      deleteChecksum(target);
    } finally {
      Files.deleteIfExists(temporary);
    }
  }

  // Hadoop keeps a checksum beside each file it writes, and refuses to read a file that another one's checksum is left
  // for: _last_checkpoint of another writer, or a commit that was undone. A file without one is read as it is. Deleted
  // before, so that no reader gets ours by it, and after, for a writer that committed in between.
  private static void deleteChecksum(java.nio.file.Path file) throws IOException {
    Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
  }

  // Asked about files that Delta writes itself, which are the checkpoints: on a file system they grow under the eyes of
  // readers. With this answer Delta writes them under another name and renames.
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return Boolean.TRUE;
  }

  private static void writeLines(java.nio.file.Path file, Iterator<String> lines) throws IOException {
    OpenOption[] options = {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE, StandardOpenOption.SYNC};
    Writer writer = Files.newBufferedWriter(file, StandardCharsets.UTF_8, options);
    try {
      while (lines.hasNext()) {
        writer.write(String.valueOf(lines.next())); // Janino takes it for an object.
        writer.write("\n");
      }
    } finally {
      writer.close();
    }
  }
}
