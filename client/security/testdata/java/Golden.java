// Writes what Kafka's own clients make of the files beside it, for the tests of this package.
//
//   java -cp "$(docker/kafka fetch)/*" client/security/testdata/java/Golden.java client/security
//
// Names of all settings go to javanames.txt; each testdata/jaas/*.properties, read by
// java.util.Properties and by Kafka's parser of JAAS lines, to *.golden.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

public class Golden {
  public static void main(String[] args) throws Exception {
    Path at = Paths.get(args[0]);
    SortedSet<String> names = new TreeSet<>(ProducerConfig.configNames());
    names.addAll(ConsumerConfig.configNames());
    names.addAll(AdminClientConfig.configNames());
    Files.writeString(at.resolve("javanames.txt"), String.join("\n", names) + "\n");
    try (DirectoryStream<Path> files = Files.newDirectoryStream(at.resolve("testdata/jaas"), "*.properties")) {
      for (Path file : files) {
        String out = file.toString().replace(".properties", ".golden");
        Files.writeString(Paths.get(out), golden(file), StandardCharsets.UTF_8);
      }
    }
  }

  static String golden(Path file) throws Exception {
    Properties all = new Properties();
    try (InputStream in = Files.newInputStream(file)) {
      all.load(in);
    } catch (IllegalArgumentException e) {
      return "refused\n";
    }
    StringBuilder out = new StringBuilder();
    for (String key : new TreeSet<>(all.stringPropertyNames()))
      out.append(quote(key)).append(" = ").append(quote(all.getProperty(key))).append('\n');
    String line = all.getProperty("sasl.jaas.config");
    if (line == null) return out.toString();
    try {
      JaasContext context = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(line)));
      AppConfigurationEntry entry = context.configurationEntries().get(0);
      out.append("module ").append(entry.getLoginModuleName()).append('\n');
      for (Map.Entry<String, ?> option : new TreeMap<>(entry.getOptions()).entrySet())
        out.append("option ").append(quote(option.getKey())).append(" = ").append(quote((String) option.getValue())).append('\n');
    } catch (RuntimeException e) {
      out.append("jaas refused\n");
    }
    return out.toString();
  }

  // quote keeps printable ASCII and writes the rest as \\uXXXX, by character of Java's.
  static String quote(String s) {
    return s.chars().mapToObj(c -> c < ' ' || c > '~' || c == '"' || c == '\\' ? String.format("\\u%04x", c) : String.valueOf((char) c))
        .collect(Collectors.joining("", "\"", "\""));
  }
}
