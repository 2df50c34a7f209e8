package io.lakewright.iceberg;

import java.io.IOException;
import java.nio.BufferUnderflowException;

/**
 * Reading of one file, whose failures name it: others may be read. What the store, or the memory, is to blame for stays what
 * it is.
 */
final class FileReading {
  private FileReading() {}

  interface Reading<T> {
    T read() throws IOException;
  }

  /** Returns what was read; throws UnsupportedOperationException if that contradicts the file's schema or its format. */
  static <T> T of(String file, Reading<T> reading) throws IOException {
    try {
      return reading.read();
    } catch (RuntimeException failure) {
      throw isOfFile(failure)
          ? new UnsupportedOperationException("Cannot read " + file + ": " + failure, failure)
          : failure;
    }
  }

  private static boolean isOfFile(RuntimeException failure) {
    for (Throwable one = failure; one != null; one = one.getCause()) {
      if (one instanceof IOException) {
        return false;
      }
    }
    return failure instanceof NullPointerException || failure instanceof ClassCastException
        || failure instanceof IndexOutOfBoundsException || failure instanceof IllegalArgumentException
        || failure instanceof ArithmeticException || failure instanceof NegativeArraySizeException
        || failure instanceof BufferUnderflowException
        || failure.getClass().getName().contains("org.apache.parquet."); // Iceberg has its own copy of it.
  }
}
