package io.lakewright.qbeast;

import io.qbeast.spark.delta.hook.PreCommitHook;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.Protocol;
import org.apache.spark.sql.delta.actions.RemoveFile;
import org.apache.spark.sql.delta.util.FileNames;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Runs inside the library's transaction, right before its commit, and aborts a commit that is not exactly the planned
 * one. The library chooses its files before the transaction begins, so Delta does not notice if one of them is removed
 * in between, and its rows would be there twice. Here the commits since the plan are read again. Delta compares those
 * since the transaction began, which is earlier than this reading, so no commit is left out.
 */
public final class IndexCommitCheck implements PreCommitHook {
  private static final ConcurrentHashMap PLANS = new ConcurrentHashMap();
  private static final ConcurrentHashMap CANCELLED = new ConcurrentHashMap();

  /** Starts every message of a check that another writer's commit made fail. */
  public static final String TAKEN = "LAKEWRIGHT_TAKEN: ";

  /** Starts every message of a check that a repetition would make fail again. */
  public static final String REFUSED = "LAKEWRIGHT_REFUSED: ";

  private final String key;

  public IndexCommitCheck(String key) {
    this.key = key;
  }

  /** Registers the plan of one call: the files that it replaces, their rows, and the version they were chosen at. */
  public static void expect(String key, DeltaLog log, long version, List paths, long rows) {
    PLANS.put(key, new Plan(log, version, new HashSet(paths), rows));
  }

  /** Forgets a plan; returns whether a commit was checked against it. */
  public static boolean forget(String key) {
    Plan plan = (Plan) PLANS.remove(key);
    return plan != null && plan.isChecked;
  }

  /** Forbids all commits of a job's claim that have not reached their check. */
  public static void cancel(String key) {
    CANCELLED.put(key, key);
  }

  /** Ends a claim: what is known of it is forgotten. */
  public static void end(String key) {
    CANCELLED.remove(key);
  }

  /** Returns the commits after a version as their lines, behind the number of each. */
  public static List commits(DeltaLog log, long after) {
    List found = new ArrayList();
    long newest = log.update(false, Option.empty()).version();
    for (long version = after + 1; version <= newest; version++) {
      List one = new ArrayList();
      one.add(Long.toString(version));
      Iterator lines =
          log.store().read(FileNames.deltaFile(log.logPath(), version), log.newDeltaHadoopConf()).iterator();
      while (lines.hasNext()) {
        one.add(lines.next());
      }
      found.add(one);
    }
    return found;
  }

  public String name() {
    return "lakewright";
  }

  public scala.collection.immutable.Map run(scala.collection.Seq actions) {
    Plan plan = (Plan) PLANS.get(key);
    if (plan == null) {
      throw new IllegalStateException("no plan is registered for the commit of " + key);
    }
    plan.isChecked = true;
    if (CANCELLED.containsKey(key)) {
      throw new IllegalStateException("the job was cancelled before its commit");
    }
    checkPlanned(plan, actions);
    checkSince(plan);
    return scala.collection.immutable.Map$.MODULE$.empty();
  }

  /** Throws unless the commit removes exactly the planned files, and adds as many rows as they have, all counted. */
  private static void checkPlanned(Plan plan, scala.collection.Seq actions) {
    Set left = new HashSet(plan.paths);
    long rows = 0;
    Iterator each = actions.iterator();
    while (each.hasNext()) {
      Object action = each.next();
      if (action instanceof RemoveFile) {
        String path = ((RemoveFile) action).path();
        if (!left.remove(path)) {
          throw new IllegalStateException(REFUSED + "the library removes " + path + ", which was not planned, or twice");
        }
      } else if (action instanceof AddFile) {
        Option counted = ((AddFile) action).numLogicalRecords();
        if (!counted.isDefined()) {
          throw new IllegalStateException(
              REFUSED + "the output " + ((AddFile) action).path() + " has no numRecords, so its rows cannot be compared");
        }
        rows += ((Long) counted.get()).longValue();
      } else {
        throw new IllegalStateException(
            REFUSED + "the library commits more than files: " + action.getClass().getName());
      }
    }
    if (!left.isEmpty()) {
      throw new IllegalStateException(TAKEN + left.size() + " planned files are gone, such as " + left.iterator().next());
    }
    if (rows != plan.rows) {
      throw new IllegalStateException(REFUSED + "the outputs have " + rows + " rows, the inputs " + plan.rows);
    }
  }

  /** Throws if a commit since the plan removed one of its files, or changed what the table is read by. */
  private static void checkSince(Plan plan) {
    plan.log.update(false, Option.empty());
    Iterator changes = plan.log.getChanges(plan.version + 1, true);
    while (changes.hasNext()) {
      Tuple2 change = (Tuple2) changes.next();
      Iterator actions = ((scala.collection.Seq) change._2()).iterator();
      while (actions.hasNext()) {
        Object action = actions.next();
        if (action instanceof RemoveFile && plan.paths.contains(((RemoveFile) action).path())) {
          throw new IllegalStateException(
              TAKEN + "version " + change._1() + " removed " + ((RemoveFile) action).path());
        }
        if (action instanceof Protocol) {
          throw new IllegalStateException(TAKEN + "version " + change._1() + " changed the protocol");
        }
      }
    }
  }

  /** What one call of the library is to commit. */
  private static final class Plan {
    final DeltaLog log;
    final long version;
    final Set paths;
    final long rows;
    volatile boolean isChecked;

    Plan(DeltaLog log, long version, Set paths, long rows) {
      this.log = log;
      this.version = version;
      this.paths = paths;
      this.rows = rows;
    }
  }
}
