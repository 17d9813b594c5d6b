import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Writes and reads the sales table through the catalog that the statement in the file named creates. */
public class Sales {
  public static void main(String[] arguments) throws Exception {
    String printed = Files.readString(Path.of(arguments[0])).strip();
    String statement = printed.endsWith(";") ? printed.substring(0, printed.length() - 1) : printed;
    String catalog = statement.split("\\s+")[2];

    Configuration settings = new Configuration();
    settings.setString("parallelism.default", "1");
    settings.setString("rest.bind-address", "127.0.0.1");
    settings.setString("rest.address", "127.0.0.1");
    TableEnvironment flink =
        TableEnvironment.create(EnvironmentSettings.newInstance().inBatchMode().withConfiguration(settings).build());

    step("create catalog", () -> flink.executeSql(statement));
    flink.executeSql("USE CATALOG " + catalog);
    step("create database", () -> flink.executeSql("CREATE DATABASE lakehouse"));
    step("create table", () -> flink.executeSql(
        "CREATE TABLE lakehouse.sales (order_id BIGINT, customer_id BIGINT, amount DOUBLE, order_date DATE)"));
    step("insert", () -> flink.executeSql(
        "INSERT INTO lakehouse.sales VALUES (1001, 501, CAST(250.75 AS DOUBLE), DATE '2024-01-10'),"
            + " (1002, 502, CAST(180.40 AS DOUBLE), DATE '2024-01-11')").await());
    step("read", () -> same(
        rows(flink, "SELECT order_id, customer_id, amount, order_date FROM lakehouse.sales ORDER BY order_id"),
        List.of("+I[1001, 501, 250.75, 2024-01-10]", "+I[1002, 502, 180.4, 2024-01-11]")));
    step("drop", () -> {
      flink.executeSql("DROP TABLE lakehouse.sales");
      flink.executeSql("DROP DATABASE lakehouse");
    });
  }

  interface Step {
    void run() throws Exception;
  }

  static void step(String name, Step step) throws Exception {
    step.run();
    System.out.println("done " + name);
  }

  static List<String> rows(TableEnvironment flink, String query) throws Exception {
    List<String> rows = new ArrayList<>();
    try (CloseableIterator<Row> found = flink.executeSql(query).collect()) {
      found.forEachRemaining(row -> rows.add(row.toString()));
    }
    return rows;
  }

  static void same(List<String> got, List<String> wanted) {
    if (!got.equals(wanted)) throw new AssertionError("got " + got + ", want " + wanted);
  }
}
