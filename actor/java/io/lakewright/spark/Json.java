package io.lakewright.spark;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/** Values from Python as one text each: a list that is built by calls costs one for each of its items. */
public final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** Reads an object, in the order of its names. */
  public static Map<String, Object> object(String text) throws IOException {
    return MAPPER.readValue(text, new TypeReference<Map<String, Object>>() {});
  }

  /** Reads an array of objects. */
  public static List<Map<String, Object>> objects(String text) throws IOException {
    return MAPPER.readValue(text, new TypeReference<List<Map<String, Object>>>() {});
  }

  /** Reads an array of texts. */
  public static List<String> texts(String text) throws IOException {
    return MAPPER.readValue(text, new TypeReference<List<String>>() {});
  }

  /** Reads an array of numbers, each an Integer or a Long. */
  public static List<Number> numbers(String text) throws IOException {
    return MAPPER.readValue(text, new TypeReference<List<Number>>() {});
  }

  /** Reads a value of this class. */
  public static <T> T read(String text, Class<T> as) throws IOException {
    return MAPPER.readValue(text, as);
  }

  public static String text(Object value) throws IOException {
    return MAPPER.writeValueAsString(value);
  }
}
