package penstock;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.api.python.PythonWorker;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.unsafe.types.UTF8String;
import org.rocksdb.RocksDB;
import scala.Product;
import scala.Tuple2;
import scala.collection.IterableOnce;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Does what an executor's first task would do for all that follow, before it is given a task.
 *
 * <p>A batch waits for its slowest task, and that would be the first of a new executor: its Python
 * process starts, and what runs generated code is loaded. The driver offers an executor nothing
 * until its plugins have begun, so all of that is in no batch's way here.
 *
 * <p>A Python process serves the tasks that ask for one like it: its program, its two modules and
 * its variables. Which these are is told by executors whose tasks asked for them; what sessions of
 * Penstock ask for is known before.
 */
public class WarmStart implements SparkPlugin {
  static final long LIMIT_MS = 10000; // a cold executor is better than none
  static final int KINDS = 4; // of Python processes: one of each is started
  static final Class MAP = scala.collection.immutable.Map.class;
  static final Class TEXT = String.class;
  static final Class[] NONE = {};
  static final Class[] CREATED = {TEXT, TEXT, TEXT, MAP, boolean.class};
  static final Class[] RELEASED = {TEXT, TEXT, TEXT, MAP, PythonWorker.class};
  static final Object[] NOTHING = {};
  static final String OWN = "SPARK_LOCAL_DIRS"; // differs from executor to executor

  public DriverPlugin driverPlugin() {
    return new Known();
  }

  public ExecutorPlugin executorPlugin() {
    return new Warm();
  }

  /** In the driver: what the Python processes of executors were like. */
  public static class Known implements DriverPlugin {
    private final Set processes = new LinkedHashSet();

    public Map init(SparkContext context, PluginContext plugin) {
      SparkConf conf = plugin.conf();
      String python = System.getenv("PYSPARK_PYTHON");
      if (python != null && conf.get("spark.python.daemon.module", "").startsWith("penstock.")) {
        processes.add(usual(conf, python));
      }
      return new HashMap();
    }

    /** Learns from what it is told, and tells all it knows. */
    public synchronized Object receive(Object told) {
      for (Iterator all = ((List) told).iterator(); all.hasNext() && processes.size() < KINDS; ) {
        processes.add(all.next());
      }
      return new ArrayList(processes);
    }
  }

  /** As Spark 4.3 starts one for a task whose session sets nothing that says otherwise. */
  static List usual(SparkConf conf, String python) {
    Map variables = new HashMap();
    for (Iterator set = CollectionConverters.asJava(conf.getExecutorEnv()).iterator(); set.hasNext(); ) {
      Tuple2 one = (Tuple2) set.next();
      variables.put(one._1(), one._2());
    }
    String seed = System.getenv("PYTHONHASHSEED");
    variables.put("PYTHONHASHSEED", seed == null ? "0" : seed);
    if (!variables.containsKey("OMP_NUM_THREADS")) {
      variables.put("OMP_NUM_THREADS", conf.get("spark.task.cpus", "1"));
    }
    variables.put("PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE", "1");
    variables.put("PYTHON_UDF_BATCH_SIZE", "100");
    variables.put("SPARK_AUTH_SOCKET_TIMEOUT", "15");
    variables.put("SPARK_BUFFER_SIZE", conf.get("spark.buffer.size", "65536"));
    variables.put("SPARK_JOB_ARTIFACT_UUID", "default");
    variables.put("SPARK_PYTHON_RUNTIME", "PYTHON_WORKER");
    variables.put("SPARK_REUSE_WORKER", "1");
    variables.put("SPARK_SIMPLIFIED_TRACEBACK", "1");
    String daemon = conf.get("spark.python.daemon.module");
    return Arrays.asList(new Object[] {python, "pyspark.worker", daemon, variables});
  }

  /** In an executor. */
  public static class Warm implements ExecutorPlugin {
    private PluginContext plugin;
    private int told;

    public void init(PluginContext given, Map nothing) {
      plugin = given;
      if (given.executorID().equals("driver")) {
        return; // local: nobody else's tasks wait for these
      }
      Thread code = quietly(new Code(given.conf()));
      Thread python = quietly(new Python(given));
      try {
        code.join(LIMIT_MS);
        python.join(LIMIT_MS);
      } catch (InterruptedException end) {
        Thread.currentThread().interrupt();
      }
      told = processes().size(); // the driver knew these
    }

    /** Tells the driver of Python processes that are unlike those it knew. */
    public void onTaskSucceeded() {
      Map here = processes();
      if (here.size() == told) {
        return;
      }
      told = here.size();
      try {
        plugin.send(new ArrayList(here.keySet()));
      } catch (Exception unreached) {
        told = 0; // after the next task
      }
    }

    public void shutdown() {}

    public void onTaskStart() {}

    public void onTaskFailed(TaskFailedReason reason) {}
  }

  /** What this executor's Python processes are like, without what is its own. */
  static Map processes() {
    Map found = new HashMap();
    try {
      Object env = environment();
      synchronized (env) {
        Object kept = asked(env, "pythonWorkers", scala.collection.mutable.HashMap.class, NONE, NOTHING);
        Map all = CollectionConverters.asJava((scala.collection.mutable.Map) kept);
        for (Iterator keys = all.keySet().iterator(); keys.hasNext(); ) {
          Product key = (Product) keys.next();
          Map variables = new HashMap(CollectionConverters.asJava((scala.collection.Map) key.productElement(3)));
          variables.remove(OWN);
          Object[] one = {key.productElement(0), key.productElement(1), key.productElement(2), variables};
          found.put(Arrays.asList(one), Boolean.TRUE);
        }
      }
    } catch (Throwable other) {
      // another Spark: its executors start as they always did
    }
    return found;
  }

  static Object environment() throws Throwable {
    MethodType type = MethodType.methodType(SparkEnv.class);
    return inside().findStatic(SparkEnv.class, "get", type).invokeWithArguments(NOTHING);
  }

  /** A method's answer, found by its exact type: to list the methods of SparkEnv, Java would need
   * classes that come with Spark Connect only. */
  static Object asked(Object env, String name, Class answer, Class[] types, Object[] arguments)
      throws Throwable {
    MethodType type = MethodType.methodType(answer, types);
    MethodHandle method = inside().findVirtual(SparkEnv.class, name, type).bindTo(env);
    return method.invokeWithArguments(arguments);
  }

  static MethodHandles.Lookup inside() throws Throwable {
    return MethodHandles.privateLookupIn(SparkEnv.class, MethodHandles.lookup());
  }

  static Thread quietly(Runnable work) {
    Thread started = new Thread(work, "penstock-warm-start");
    started.setDaemon(true);
    started.start();
    return started;
  }

  /** Starts one Python process of each kind; the others are forked from the same one. */
  static class Python implements Runnable {
    private final PluginContext plugin;

    Python(PluginContext plugin) {
      this.plugin = plugin;
    }

    public void run() {
      try {
        Object env = environment();
        BlockManager blocks = (BlockManager) asked(env, "blockManager", BlockManager.class, NONE, NOTHING);
        StringBuilder own = new StringBuilder();
        File[] folders = blocks.diskBlockManager().localDirs();
        for (int i = 0; i < folders.length; i++) {
          own.append(i == 0 ? "" : ",").append(folders[i].getPath());
        }
        List known = (List) plugin.ask(new ArrayList());
        for (Iterator all = known.iterator(); all.hasNext(); ) {
          List one = (List) all.next();
          Map variables = new HashMap((Map) one.get(3));
          variables.put(OWN, own.toString());
          Object given = scala.collection.immutable.Map$.MODULE$.from((IterableOnce) CollectionConverters.asScala(variables));
          Object[] wanted = {one.get(0), one.get(1), one.get(2), given, Boolean.TRUE};
          Tuple2 made = (Tuple2) asked(env, "createPythonWorker", Tuple2.class, CREATED, wanted);
          wanted[4] = made._1();
          asked(env, "releasePythonWorker", void.class, RELEASED, wanted);
        }
      } catch (Throwable failed) {
        // the first task that needs one starts it, and says why it cannot
      }
    }
  }

  /** Loads what runs generated code, hands rows to Python, reads files and keeps state. */
  static class Code implements Runnable {
    private final SparkConf conf;

    Code(SparkConf conf) {
      this.conf = conf;
    }

    public void run() {
      try {
        StructType columns = StructType.fromDDL("a BIGINT, b DOUBLE, c STRING, d TIMESTAMP");
        Object[] values = {Long.valueOf(1), Double.valueOf(1), UTF8String.fromString("a"), Long.valueOf(1)};
        InternalRow row = UnsafeProjection.create(columns).apply(new GenericInternalRow(values));
        ArrowWriter writer = ArrowWriter.create(columns, "UTC", false, false);
        writer.write(row);
        writer.finish();
        ArrowStreamWriter sent = new ArrowStreamWriter(writer.root(), null, new ByteArrayOutputStream());
        sent.start();
        sent.writeBatch();
        sent.end();
        writer.root().close();
        FileSystem.get(SparkHadoopUtil.get().newConfiguration(conf));
        if (conf.get("spark.sql.streaming.stateStore.providerClass", "").contains("RocksDB")) {
          RocksDB.loadLibrary();
        }
      } catch (Throwable failed) {
        // as above
      }
    }
  }
}
