package io.lakewright.qbeast;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.Calendar;
import java.util.GregorianCalendar;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/**
 * Names the cube of a row, by the rules of Qbeast's library: the first cube on the row's path that keeps its weight.
 *
 * <p>Of what it is made of, only texts go to executors; each builds its trees of cubes once.
 */
public final class QbeastCube implements UDF3<Row, Integer, String, String> {
  private static final long serialVersionUID = 1L;
  private static final String SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  private static final int DIMENSIONS_PER_SYMBOL = 6;
  private static final String OUTSIDE = "(outside)"; // No name of a cube.

  private final String coordinates; // JSON: a list, one for each indexed column (see `transformations.py`).
  private final String weights; // JSON: by the name of a file (empty: of all files), the weights of cubes, or levels.
  private final Kind kind;
  private transient Coordinate[] columns;
  private transient Map<String, Node> trees;

  /** What becomes of a cube that is not in the weights: it is passed, or taken, or only the place counts. */
  private enum Kind {
    FILE,
    INDEX,
    PLACE
  }

  private QbeastCube(String coordinates, String weights, Kind kind) {
    this.coordinates = coordinates;
    this.weights = weights;
    this.kind = kind;
  }

  /** Names the block of its file that a row is in. */
  public static QbeastCube ofFiles(String coordinates, String weights) {
    return new QbeastCube(coordinates, weights, Kind.FILE);
  }

  /** Names the cube of the index that a row belongs into. */
  public static QbeastCube ofIndex(String coordinates, String weights) {
    return new QbeastCube(coordinates, weights, Kind.INDEX);
  }

  /** Names a cube that a row is inside of, whatever its weight: so many levels below the last cube that is known. */
  public static QbeastCube ofPlaces(String coordinates, String levels) {
    return new QbeastCube(coordinates, levels, Kind.PLACE);
  }

  /**
   * Returns this for columns of Spark.
   *
   * <p>Only a compiler knows that {@code udf} of a UDF3 is meant: to Py4J {@code udf} of an Object is as near, and
   * which of both it takes differs from one process to the next.
   */
  public UserDefinedFunction ofColumns() {
    return functions.udf(this, DataTypes.StringType);
  }

  @Override
  public String call(Row values, Integer weight, String file) {
    Object[] found = new Object[values.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = values.get(i);
    }
    return of(found, weight, file);
  }

  /** Names the cube by what is mapped of each indexed column. */
  String of(Object[] values, int weight, String file) {
    if (trees == null) {
      read();
    }
    double[] place = new double[columns.length];
    for (int i = 0; i < place.length; i++) {
      place[i] = columns[i].of(values[i]);
      if (!(0.0 <= place[i] && place[i] <= 1.0)) {
        return OUTSIDE;
      }
    }
    Node node = trees.get(file);
    if (kind == Kind.PLACE) {
      return below(node, place);
    }
    while (node != null && (node.isKnown ? weight > node.weight : kind == Kind.FILE)) {
      String symbols = next(place);
      Node child = node.children.get(symbols);
      if (child == null && kind == Kind.INDEX) {
        return node.name + symbols;
      }
      node = child;
    }
    return node == null ? OUTSIDE : node.name;
  }

  private static String below(Node root, double[] place) {
    Node node = root;
    String symbols = next(place);
    while (node.children.containsKey(symbols)) {
      node = node.children.get(symbols);
      symbols = next(place);
    }
    StringBuilder name = new StringBuilder(node.name).append(symbols);
    for (int level = 1; level < node.weight; level++) {
      name.append(next(place));
    }
    return name.toString();
  }

  /** Halves the space, moves each coordinate into its half, and names the halves. */
  private static String next(double[] place) {
    char[] symbols = new char[symbolsPerLevel(place.length)];
    for (int s = 0; s < symbols.length; s++) {
      int index = 0;
      for (int i = 0; i < DIMENSIONS_PER_SYMBOL && DIMENSIONS_PER_SYMBOL * s + i < place.length; i++) {
        double doubled = place[DIMENSIONS_PER_SYMBOL * s + i] * 2;
        if (doubled >= 1) {
          index |= 1 << (DIMENSIONS_PER_SYMBOL - 1 - i);
          doubled -= 1;
        }
        place[DIMENSIONS_PER_SYMBOL * s + i] = doubled;
      }
      symbols[s] = SYMBOLS.charAt(index);
    }
    return new String(symbols);
  }

  private static int symbolsPerLevel(int dimensions) {
    return (dimensions + DIMENSIONS_PER_SYMBOL - 1) / DIMENSIONS_PER_SYMBOL;
  }

  private void read() {
    try {
      List<Map<String, Object>> given = Json.objects(coordinates);
      columns = given.stream().map(Coordinate::new).toArray(Coordinate[]::new);
      Map<String, Node> found = new HashMap<>();
      for (Map.Entry<String, Object> file : Json.object(weights).entrySet()) {
        Node root = new Node("");
        Map<?, ?> cubes = (Map<?, ?>) file.getValue();
        cubes.forEach((cube, weight) -> root.know((String) cube, (Integer) weight, columns.length));
        found.put(file.getKey(), root);
      }
      trees = found;
    } catch (IOException broken) {
      throw new UncheckedIOException(broken);
    }
  }

  /** A cube, and those below it that are known. */
  private static final class Node {
    final String name;
    final Map<String, Node> children = new HashMap<>();
    boolean isKnown;
    int weight;

    Node(String name) {
      this.name = name;
    }

    void know(String cube, int itsWeight, int dimensions) {
      int width = symbolsPerLevel(dimensions);
      Node node = this;
      for (int end = width; end <= cube.length(); end += width) {
        String path = cube.substring(0, end);
        node = node.children.computeIfAbsent(cube.substring(end - width, end), symbols -> new Node(path));
      }
      node.isKnown = true;
      node.weight = itsWeight;
    }
  }

  /** Maps the values of one column. */
  private static final class Coordinate {
    private final String kind;
    private final double minimum;
    private final double scale;
    private final Object nullValue;
    private final List<?> values;
    private final Calendar days; // Null unless values are days.

    Coordinate(Map<String, Object> given) {
      kind = (String) given.get("kind");
      minimum = ((Number) given.get("minimum")).doubleValue();
      scale = ((Number) given.get("scale")).doubleValue();
      nullValue = given.get("null");
      values = (List<?>) given.get("values");
      String zone = (String) given.get("zone");
      days = zone.isEmpty() ? null : new GregorianCalendar(TimeZone.getTimeZone(ZoneId.of(zone)));
    }

    double of(Object value) {
      switch (kind) {
        case "linear":
          return (number(value) - minimum) * scale;
        case "hashing":
          return (double) (hash(bytes(value == null ? nullValue : value)) & 0x7fffffff) / Integer.MAX_VALUE;
        case "histogram":
          return place(value == null ? "null" : value.toString());
        default:
          return 0.0;
      }
    }

    private double number(Object value) {
      double found = ((Number) (value == null ? nullValue : value)).doubleValue();
      return value == null || days == null || Double.isNaN(found) ? found : midnight((long) found);
    }

    /** Milliseconds of a day's midnight, where there are two or none as java.sql.Date takes it. */
    private double midnight(long day) {
      LocalDate date = LocalDate.ofEpochDay(day);
      days.clear();
      days.set(date.getYear(), date.getMonthValue() - 1, date.getDayOfMonth());
      return days.getTimeInMillis();
    }

    private static byte[] bytes(Object value) {
      return value instanceof byte[] ? (byte[]) value : value.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** Murmur3 with a word for each signed byte, as Scala 2.12 hashes arrays; Scala 2.13 does not. */
    private static int hash(byte[] bytes) {
      int hash = 0x3c074a61;
      for (byte one : bytes) {
        int word = Integer.rotateLeft(one * 0xcc9e2d51, 15) * 0x1b873593;
        hash = Integer.rotateLeft(hash ^ word, 13) * 5 + 0xe6546b64;
      }
      hash ^= bytes.length;
      hash = (hash ^ (hash >>> 16)) * 0x85ebca6b;
      hash = (hash ^ (hash >>> 13)) * 0xc2b2ae35;
      return hash ^ (hash >>> 16);
    }

    /** Searches the list as it is given, in or out of order, step by step as the library does. */
    private double place(String value) {
      int from = 0;
      int to = values.size();
      double last = values.size() - 1;
      while (from < to) {
        int middle = from + (to - from - 1) / 2;
        int order = value.compareTo((String) values.get(middle));
        if (order == 0) {
          return middle / last;
        }
        if (order < 0) {
          to = middle;
        } else {
          from = middle + 1;
        }
      }
      return from == 0 ? 0.0 : (from - 1) / last;
    }
  }
}
