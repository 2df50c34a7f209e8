package io.lakewright;

import java.io.IOException;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/** What Spark keeps for each thread, set and put back in one call each: active session, scheduler pool and job tags. */
public final class BoundThread {
  private static final String POOL = "spark.scheduler.pool";

  private final SparkContext context;
  private final Option before; // The session that was active.
  private final String outerPool; // Null unsets it.
  private final List tags;

  private BoundThread(SparkContext context, Option before, String outerPool, List tags) {
    this.context = context;
    this.before = before;
    this.outerPool = outerPool;
    this.tags = tags;
  }

  /** Makes the session this thread's active one, and marks the thread's jobs with pool and tags, a JSON array. */
  public static BoundThread enter(SparkSession session, String pool, String jobTags) throws IOException {
    List tags = Json.array(jobTags);
    SparkContext context = session.sparkContext();
    BoundThread bound =
        new BoundThread(context, SparkSession.getActiveSession(), context.getLocalProperty(POOL), tags);
    SparkSession.setActiveSession(session);
    context.setLocalProperty(POOL, pool);
    for (int i = 0; i < tags.size(); i++) {
      context.addJobTag((String) tags.get(i));
    }
    return bound;
  }

  /** Puts back what was before; in the thread that entered. */
  public void leave() {
    for (int i = 0; i < tags.size(); i++) {
      context.removeJobTag((String) tags.get(i));
    }
    context.setLocalProperty(POOL, outerPool);
    if (before.isEmpty()) {
      SparkSession.clearActiveSession();
    } else {
      SparkSession.setActiveSession((SparkSession) before.get());
    }
  }
}
