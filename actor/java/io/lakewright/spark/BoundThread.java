package io.lakewright.spark;

import java.io.IOException;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/** What Spark keeps for each thread, set and put back in one call each: active session, scheduler pool and job tags. */
public final class BoundThread {
  private static final String POOL = "spark.scheduler.pool";

  private final SparkContext context;
  private final Option<SparkSession> before; // The session that was active.
  private final String outerPool; // Null unsets it.
  private final List<String> tags;

  private BoundThread(SparkContext context, Option<SparkSession> before, String outerPool, List<String> tags) {
    this.context = context;
    this.before = before;
    this.outerPool = outerPool;
    this.tags = tags;
  }

  /** Makes the session this thread's active one, and marks the thread's jobs with pool and tags, a JSON array. */
  public static BoundThread enter(SparkSession session, String pool, String jobTags) throws IOException {
    List<String> tags = Json.texts(jobTags);
    SparkContext context = session.sparkContext();
    BoundThread bound =
        new BoundThread(context, SparkSession.getActiveSession(), context.getLocalProperty(POOL), tags);
    SparkSession.setActiveSession(session);
    context.setLocalProperty(POOL, pool);
    tags.forEach(context::addJobTag);
    return bound;
  }

  /** Puts back what was before; in the thread that entered. */
  public void leave() {
    tags.forEach(context::removeJobTag);
    context.setLocalProperty(POOL, outerPool);
    if (before.isEmpty()) {
      SparkSession.clearActiveSession();
    } else {
      SparkSession.setActiveSession(before.get());
    }
  }
}
