package io.lakewright.parquet;

import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.hadoop.CodecFactory;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.spark.util.SerializableConfiguration;

/** Decodes and encodes files column by column, by the settings that Spark reads and writes with. */
public abstract class ColumnTask extends ParquetTask {
  private static final long serialVersionUID = 1L;

  private static final long MAX_SAMPLE_BYTES = 16 << 20; // Of a file whose first row group is read before its turn.

  private final SerializableConfiguration settings; // With Hadoop's store its own: it is large, and sent once.
  private final String codec; // As parquet-java names it.
  private transient ParquetReadOptions options;
  private transient String file; // Which is read, for errors.

  ColumnTask(
      ParquetStore store,
      SerializableConfiguration settings,
      ArrayList<String> files,
      ArrayList<Number> sizes,
      String prefix,
      String suffix,
      String codec) {
    super(store, files, sizes, prefix, suffix);
    this.settings = settings;
    this.codec = codec;
  }

  /** Reads all inputs; throws NotCopyable if what they hold cannot be written exactly. */
  abstract void append(Outputs outputs, ColumnFile.Settings settings) throws IOException;

  /** Ends the outputs. */
  abstract void finish(Outputs outputs) throws IOException;

  void write(Outputs outputs) throws IOException {
    Configuration configuration = settings.value();
    options = HadoopReadOptions.builder(configuration).usePageChecksumVerification(true).build();
    CodecFactory codecs = new CodecFactory(configuration, ParquetOutputFormat.getPageSize(configuration));
    try {
      read(outputs, new ColumnFile.Settings(configuration, codecs.getCompressor(CompressionCodecName.valueOf(codec))));
      finish(outputs);
    } finally {
      codecs.release();
    }
  }

  private void read(Outputs outputs, ColumnFile.Settings files) throws IOException {
    try {
      append(outputs, files);
    } catch (EOFException cut) {
      throw new DamagedInput(file + " ends before its data do: restore it from a backup, or delete its rows");
    } catch (RuntimeException undecodable) {
      throw damaged(undecodable);
    } catch (IOException problem) {
      throw ParquetFooter.isMalformed(problem) ? new NotCopyable("damaged") : problem;
    }
  }

  ParquetFileReader open(int input) throws IOException {
    reads(input);
    return ParquetFileReader.open(new KnownInput(this, file, size(input)), options);
  }

  /** Notes which input is read. */
  void reads(int input) {
    file = file(input);
  }

  /** Returns the largest of the inputs that may be kept in memory, the first if there is none: small files say little. */
  int sample() {
    int largest = 0;
    for (int i = 1; i < inputs(); i++) {
      largest = size(i) > size(largest) && size(i) <= MAX_SAMPLE_BYTES ? i : largest;
    }
    return largest;
  }

  /** A page that differs from its checksum could be decoded, to other values; what cannot be decoded, Spark reports. */
  private IOException damaged(RuntimeException problem) {
    if (String.valueOf(problem.getMessage()).contains("CRC checksum")) {
      return new DamagedInput(file + " has a page that differs from its checksum (" + problem.getMessage()
          + "): restore the file from a backup, or delete its rows");
    }
    return new NotCopyable("damaged");
  }
}
