// Carries out configuration requests against a running Apache Kafka and prints its answers, one JSON line each.
//
// Usage: java -cp 'libs/*' ConfigAnswers.java host:port < steps
// A step is "describe TYPE NAME" or "alter TYPE NAME OPERATION key [value]|OPERATION key [value]...", fields
// separated by tabs; TYPE is one of ConfigResource.Type.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;

public class ConfigAnswers {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] fields = line.split("\t", -1);
                if (fields[0].equals("create")) {
                    admin.createTopics(List.of(new NewTopic(fields[1], 1, (short) 1))).all().get();
                    Thread.sleep(500);
                    continue;
                }
                ConfigResource resource = new ConfigResource(ConfigResource.Type.valueOf(fields[1]), fields[2]);
                String answer = fields[0].equals("alter")
                    ? "\"alter\": " + quoted(fields[3]) + ", " + alter(admin, resource, fields[3])
                    : "\"entries\": " + describe(admin, resource);
                System.out.println("{\"resource\": " + quoted(fields[1]) + ", \"name\": " + quoted(fields[2])
                    + ", " + answer + "}");
            }
        }
    }

    static String alter(Admin admin, ConfigResource resource, String text) throws Exception {
        List<AlterConfigOp> operations = new ArrayList<>();
        for (String part : text.split("\\|")) {
            String[] words = part.split(" ", 3);
            ConfigEntry entry = new ConfigEntry(words[1], words.length > 2 ? words[2] : "");
            operations.add(new AlterConfigOp(entry, AlterConfigOp.OpType.valueOf(words[0])));
        }
        try {
            admin.incrementalAlterConfigs(Map.of(resource, operations)).all().get();
            // A broker takes a change on a little after the controller has; the next step must find it there.
            Thread.sleep(400);
            return "\"error\": \"NONE\"";
        } catch (Exception refused) {
            Throwable cause = refused.getCause();
            return "\"error\": " + quoted(Errors.forException(cause).name()) + ", \"message\": "
                + quoted(cause.getMessage());
        }
    }

    static String describe(Admin admin, ConfigResource resource) throws Exception {
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        Map<String, String> entries = new TreeMap<>();
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries()) {
            List<String> synonyms = new ArrayList<>();
            for (ConfigEntry.ConfigSynonym synonym : entry.synonyms()) {
                synonyms.add("[" + quoted(synonym.name()) + ", " + quoted(synonym.value()) + ", "
                    + quoted(synonym.source().name()) + "]");
            }
            entries.put(entry.name(), "[" + quoted(entry.name()) + ", " + quoted(entry.value()) + ", "
                + quoted(entry.source().name()) + ", " + entry.isReadOnly() + ", " + entry.isSensitive() + ", "
                + quoted(entry.type().name()) + ", " + (entry.documentation() != null) + ", " + synonyms + "]");
        }
        return entries.values().toString();
    }

    static String quoted(String text) {
        return text == null ? "null" : "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
