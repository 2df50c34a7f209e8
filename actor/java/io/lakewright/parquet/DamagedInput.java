package io.lakewright.parquet;

import java.io.IOException;

/** A file's bytes are not those that its writer wrote: copying would pass them on, decoding would hide it. */
public final class DamagedInput extends IOException {
  private static final long serialVersionUID = 1L;

  public DamagedInput(String message) {
    super(message);
  }
}
