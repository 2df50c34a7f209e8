package io.lakewright;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/** Values from Python as one text each: a list that is built by calls costs one for each of its items. */
final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** Reads an object, in the order of its names. */
  static Map object(String text) throws IOException {
    return (Map) MAPPER.readValue(text, Map.class);
  }

  /** Reads an array. */
  static List array(String text) throws IOException {
    return (List) MAPPER.readValue(text, List.class);
  }

  static String text(Object value) throws IOException {
    return MAPPER.writeValueAsString(value);
  }
}
