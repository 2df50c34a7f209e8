package io.lakewright.parquet;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;

/** Positions of the rows of each input of a task that it leaves out, ascending. */
public final class HiddenRows implements Serializable {
  private static final long serialVersionUID = 1L;

  private final long[][] positions;

  public HiddenRows(long[][] positions) {
    this.positions = positions;
  }

  /** Returns how many rows are left out. */
  public long count() {
    return Arrays.stream(positions).mapToLong(of -> of.length).sum();
  }

  /** Returns the positions as JSON, an array for each input. */
  public String text() throws IOException {
    return Json.text(positions);
  }

  /**
   * Returns, of so many rows of an input from a position on, the number of the first output, 0, and -1 for those left out;
   * null where all of them stay.
   */
  int[] numbers(int input, long first, int rows) {
    long[] of = positions[input];
    int from = at(of, first);
    int until = at(of, first + rows);
    if (from == until) {
      return null;
    }
    int[] numbers = new int[rows];
    for (int i = from; i < until; i++) {
      numbers[(int) (of[i] - first)] = -1;
    }
    return numbers;
  }

  /** Throws NotCopyable for an input of so many rows of which others are to be left out. */
  void require(int input, long rows) throws NotCopyable {
    if (at(positions[input], rows) < positions[input].length) {
      throw new NotCopyable("damaged");
    }
  }

  private static int at(long[] positions, long position) {
    int found = Arrays.binarySearch(positions, position);
    return found < 0 ? -1 - found : found;
  }
}
