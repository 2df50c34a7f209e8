package io.lakewright.parquet;

import java.io.Serializable;

/** Says of each row, by its key, which output it goes to; sent to executors with the task. */
public interface KeyRoute extends Serializable {
  /** Returns the number of the output. */
  int outputOf(Object[] key);
}
