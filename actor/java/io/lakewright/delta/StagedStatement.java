package io.lakewright.delta;

import static java.util.stream.Collectors.joining;

import io.delta.storage.commit.Commit;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.CurrentTransactionInfo;
import org.apache.spark.sql.delta.DeltaOperations;
import org.apache.spark.sql.delta.NoOpTransactionExecutionObserver$;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.TransactionExecutionObserver;
import org.apache.spark.sql.delta.TransactionExecutionObserver$;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.Action;
import scala.Function0;
import scala.Option;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Runs a statement of Delta's and keeps what it would commit: its files are written, and the log is not touched.
 *
 * <p>Delta lets the observer of a thread make the transactions that the thread begins. Those made here only note what
 * they are asked to commit, and cannot reach the log in any other way.
 */
public final class StagedStatement implements InvocationHandler {
  private final Snapshot stored;
  private final List<Staged> begun = new ArrayList<>();

  private StagedStatement(Snapshot stored) {
    this.stored = stored;
  }

  /** A transaction that writes files, and is never committed. */
  public static final class Staged extends OptimisticTransaction {
    private DeltaOperations.Operation operation;
    private Seq<Action> offered;

    Staged(Option<CatalogTable> catalogTable, Snapshot stored) {
      super(stored.deltaLog(), catalogTable, stored);
    }

    @Override
    public long commit(Seq<Action> actions, DeltaOperations.Operation operation, Map<String, String> tags) {
      this.offered = actions;
      this.operation = operation;
      return snapshot().version();
    }

    @Override
    public Tuple3<Option<VersionChecksum>, Commit, CurrentTransactionInfo> writeCommitFile(
        long version, Iterator<String> actions, CurrentTransactionInfo info) {
      throw new IllegalStateException("a staged statement does not commit");
    }

    /** The operation that the history is to show. */
    public DeltaOperations.Operation operation() {
      return operation;
    }

    /** What it would commit, as a JSON array of actions. */
    public String offeredActions() {
      return CollectionConverters.asJava(offered).stream().map(Action::json).collect(joining(",", "[", "]"));
    }
  }

  /**
   * Runs a statement, whose transactions read and write files by a snapshot; returns those that were to be committed.
   *
   * @param stored the newest snapshot of the table, with the schema that files are to be read and written by
   */
  public static List<Staged> run(SparkSession session, String statement, Snapshot stored) {
    StagedStatement staged = new StagedStatement(stored);
    Class<?> observer = TransactionExecutionObserver.class;
    Object own = Proxy.newProxyInstance(observer.getClassLoader(), new Class<?>[] {observer}, staged);
    TransactionExecutionObserver before =
        (TransactionExecutionObserver) TransactionExecutionObserver$.MODULE$.getObserver();
    TransactionExecutionObserver$.MODULE$.setObserver((TransactionExecutionObserver) own);
    try {
      session.sql(statement).collect();
    } finally {
      TransactionExecutionObserver$.MODULE$.setObserver(before);
    }
    return staged.begun.stream().filter(one -> one.offered != null).toList();
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("startingTransaction")) {
      OptimisticTransaction given = (OptimisticTransaction) ((Function0<?>) arguments[0]).apply();
      Staged own = new Staged(given.catalogTable(), stored);
      begun.add(own);
      return own;
    }
    try {
      return method.invoke(NoOpTransactionExecutionObserver$.MODULE$, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
