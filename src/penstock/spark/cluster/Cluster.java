package penstock;

import org.apache.spark.SparkConf;
import org.apache.spark.deploy.master.Master;
import org.apache.spark.deploy.master.MasterArguments;
import org.apache.spark.deploy.worker.Worker;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.util.SparkUncaughtExceptionHandler;
import scala.Option;

/** A standalone master and its only worker in one JVM, on loopback: PROPERTIES SLOTS MB WORK. */
public class Cluster {
  private static final String HERE = "127.0.0.1";

  public static void main(String[] arguments) {
    // As Spark's own main methods do: what one application does wrong must not end the others.
    Thread.setDefaultUncaughtExceptionHandler(new SparkUncaughtExceptionHandler(false));
    SparkConf conf = new SparkConf();
    String[] given = {"--host", HERE, "--port", "0", "--properties-file", arguments[0]};
    new MasterArguments(given, conf); // reads the properties
    RpcEnv master = (RpcEnv) Master.startRpcEnvAndEndpoint(HERE, 0, 0, conf)._1();
    RpcEnv worker =
        Worker.startRpcEnvAndEndpoint(
            HERE, 0, 0, Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]),
            new String[] {"spark://" + HERE + ":" + master.address().port()}, arguments[3],
            Option.empty(), conf, Option.empty());
    worker.awaitTermination();
  }
}
