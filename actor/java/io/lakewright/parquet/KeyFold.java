package io.lakewright.parquet;

import java.io.Serializable;

/** What is to be known of rows by their keys; sent to executors with the task. */
public interface KeyFold extends Serializable {
  /** Adds a row of an input; the next row replaces its key. */
  void add(int input, Object[] key);

  /** Returns what is known of all rows, as JSON can have it. */
  Object found();
}
