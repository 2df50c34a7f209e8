package io.lakewright.parquet;

import java.io.IOException;

/** A file's row groups cannot be copied as they are; the message is the reason as one word. */
public final class NotCopyable extends IOException {
  private static final long serialVersionUID = 1L;

  public NotCopyable(String reason) {
    super(reason);
  }
}
