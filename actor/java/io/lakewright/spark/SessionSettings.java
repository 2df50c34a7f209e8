package io.lakewright.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/** Settings of a session for a while: set and put back in one call each. A setting that was not there is removed. */
public final class SessionSettings {
  private final SQLConf conf;
  private final List<String> names;
  private final String[] before;

  private SessionSettings(SQLConf conf, List<String> names, String[] before) {
    this.conf = conf;
    this.names = names;
    this.before = before;
  }

  /** Sets each name of a JSON object to its value, a text. */
  public static SessionSettings set(SparkSession session, String settings) throws IOException {
    SQLConf conf = session.sessionState().conf();
    Map<String, Object> values = Json.object(settings);
    List<String> names = new ArrayList<>(values.keySet());
    String[] before = new String[names.size()];
    for (int i = 0; i < before.length; i++) {
      String name = names.get(i);
      before[i] = conf.contains(name) ? conf.getConfString(name) : null;
      conf.setConfString(name, (String) values.get(name));
    }
    return new SessionSettings(conf, names, before);
  }

  /** Puts back what was before. */
  public void restore() {
    for (int i = 0; i < before.length; i++) {
      if (before[i] == null) {
        conf.unsetConf(names.get(i));
      } else {
        conf.setConfString(names.get(i), before[i]);
      }
    }
  }
}
