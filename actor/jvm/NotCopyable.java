package io.lakewright;

import java.io.IOException;

/** A file's row groups cannot be copied as they are; the message is the reason as one word. */
public final class NotCopyable extends IOException {
  public NotCopyable(String reason) {
    super(reason);
  }
}
