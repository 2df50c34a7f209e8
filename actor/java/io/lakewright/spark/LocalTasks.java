package io.lakewright.spark;

import java.io.InterruptedIOException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.function.Function;

/**
 * Runs tasks in the threads that ask for them, where the master is local: no more at once than it has cores.
 *
 * <p>A Spark job of one task would serialize the task, and with it Hadoop's whole configuration, three times.
 */
public final class LocalTasks {
  private static final Set<LocalTasks> RUNNING = ConcurrentHashMap.newKeySet();
  private static final ThreadLocal<LocalTasks> CURRENT = new ThreadLocal<LocalTasks>();
  private static SparkContext application;
  private static Semaphore cores;

  private final scala.collection.Set<String> tags; // Those of the thread that asked: job tags of Spark's.
  private Thread waiting; // Null unless it waits for a core.
  private volatile boolean cancelled;

  private LocalTasks(scala.collection.Set<String> tags) {
    this.tags = tags;
  }

  /** Runs the task in this thread; it can be cancelled by each job tag that the thread has now. */
  public static Object call(SparkContext context, Function<Object, Object> task) throws Exception {
    LocalTasks running = new LocalTasks(context.getJobTags());
    RUNNING.add(running);
    try {
      Semaphore free = cores(context);
      running.await(free);
      CURRENT.set(running);
      try {
        return task.call(null);
      } finally {
        CURRENT.remove();
        free.release();
      }
    } finally {
      RUNNING.remove(running);
    }
  }

  /** Cancels the tasks that run, or wait for a core, and have this job tag. */
  public static void cancel(String tag) {
    for (Object each : RUNNING) { // Janino takes them for objects.
      LocalTasks one = (LocalTasks) each;
      if (one.tags.contains(tag)) {
        one.cancel();
      }
    }
  }

  /** Whether the task of this thread was cancelled; false in a thread without one. */
  public static boolean isCancelled() {
    Object running = CURRENT.get();
    return running != null && ((LocalTasks) running).cancelled;
  }

  private synchronized void cancel() {
    cancelled = true;
    if (waiting != null) {
      waiting.interrupt();
    }
  }

  private void await(Semaphore free) throws InterruptedIOException {
    boolean acquired = false;
    try {
      waits(Thread.currentThread());
      free.acquire();
      acquired = true;
    } catch (InterruptedException byItsCanceller) {
      cancelled = true;
    }
    waits(null);
    if (cancelled) {
      if (acquired) {
        free.release();
      }
      throw new InterruptedIOException("the task was cancelled before it began");
    }
  }

  private synchronized void waits(Thread thread) {
    if (thread == null) {
      Thread.interrupted(); // A task that runs is asked to end, not interrupted.
    }
    waiting = thread;
  }

  private static synchronized Semaphore cores(SparkContext context) {
    if (application != context) {
      application = context;
      cores = new Semaphore(context.defaultParallelism(), true);
    }
    return cores;
  }
}
