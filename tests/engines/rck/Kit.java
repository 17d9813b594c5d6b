import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests;
import org.apache.iceberg.rest.RESTCompatibilityKitViewCatalogTests;
import org.junit.jupiter.api.AfterEach;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs Iceberg's REST compatibility kit, as it is published, against a running server.
 *
 * <p>Arguments: a file of the client's properties, a location that the kit may put things below, a regular expression
 * for the methods to run. Prints a line a test: its end (passed, failed or skipped), its class, its name and
 * why, separated by tabs.
 */
public class Kit {
  /** The kit asks for locations on the local disk, which a server that keeps everything in its store refuses. */
  static String location;

  public static void main(String[] arguments) throws Exception {
    configure(Path.of(arguments[0]));
    location = arguments[1];
    LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
        // Without this the kit starts a server of its own and tests that.
        .configurationParameter("rck.local", "false")
        .selectors(selectClass(Tables.class), selectClass(Views.class))
        .filters(only(Pattern.compile(arguments[2])))
        .build();
    LauncherFactory.create().execute(request, new Report());
  }

  /** The kit hands every system property to the client, and reads its own settings from there. */
  static void configure(Path file) throws Exception {
    try (Reader reader = Files.newBufferedReader(file)) {
      System.getProperties().load(reader);
    }
    System.setProperty("rck.requires-namespace-create", "true");
    System.setProperty("rck.supports-names-with-dot", "true");
  }

  /** All but the one test that moves a table's metadata file away with calls on local files. */
  static PostDiscoveryFilter only(Pattern wanted) {
    return descriptor -> {
      if (!(descriptor.getSource().orElse(null) instanceof MethodSource method)) return FilterResult.included("");
      String name = method.getMethodName();
      boolean included = wanted.matcher(name).find() && !name.equals("testLoadTableWithMissingMetadataFile");
      return FilterResult.includedIf(included);
    };
  }

  public static class Tables extends RESTCompatibilityKitCatalogTests {
    @Override
    protected String baseTableLocation(TableIdentifier table) {
      return String.join("/", location, table.namespace().toString(), table.name());
    }

    /** The kit has no setting for this one. */
    @Override
    protected boolean supportsNestedNamespaces() {
      return true;
    }

    /** One of its tests leaves this namespace behind, another wants it missing; the kit clears up other names only. */
    @AfterEach
    void dropParent() {
      catalog().dropNamespace(Namespace.of("parent"));
    }
  }

  public static class Views extends RESTCompatibilityKitViewCatalogTests {
    @Override
    protected String viewLocation(String... levels) {
      return location + "/" + String.join("/", levels);
    }
  }

  static class Report implements TestExecutionListener {
    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
      line("skipped", test, reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      Throwable thrown = result.getThrowable().orElse(null);
      switch (result.getStatus()) {
        case SUCCESSFUL -> {
          if (test.isTest()) line("passed", test, "");
        }
        case ABORTED -> line("skipped", test, thrown == null ? "" : thrown.getMessage());
        case FAILED -> line("failed", test, thrown == null ? "" : thrown + place(thrown));
      }
    }

    static void line(String end, TestIdentifier test, String why) {
      String suite = test.getSource().orElse(null) instanceof MethodSource method ? method.getJavaClass().getSimpleName() : "";
      String reason = why == null ? "" : why.strip().replaceAll("\\s+", " ");
      System.out.println(String.join("\t", end, suite, test.getLegacyReportingName(), reason));
    }

    /** The line of the kit that failed. */
    static String place(Throwable thrown) {
      for (StackTraceElement element : thrown.getStackTrace()) {
        if (element.getClassName().matches("org\\.apache\\.iceberg\\..*CatalogTests")) return " at " + element;
      }
      return "";
    }
  }
}
