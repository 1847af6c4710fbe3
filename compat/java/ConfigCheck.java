// Reads cases, one JSON-free line each, and prints what Apache Kafka says of them: "ok" with a few values, or the
// message of the refusal. Tabs separate the fields of a line, the first of which names the kind of case.
//
//   node        key=value ...     a server.properties
//   topic       key=value ...     overrides of a topic, on a broker with defaults
//   group       key=value ...     overrides of a group, on a broker with defaults
//   metrics     key=value ...     a client metrics subscription
//   properties  text              a properties file, with \n, \t and \\ escaped once
//   double      number            how Java prints it

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class ConfigCheck {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            String answer;
            try {
                answer = "ok" + check(fields[0], Arrays.copyOfRange(fields, 1, fields.length));
            } catch (Exception refused) {
                answer = String.valueOf(refused.getMessage());
            }
            System.out.println(answer.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"));
        }
    }

    static String check(String kind, String[] fields) throws Exception {
        switch (kind) {
            case "node":
                return describe(KafkaConfig.fromProps(properties(pairs(fields)), false));
            case "topic":
                LogConfig.validate(Map.of(), pairs(fields), broker().extractLogConfigMap(), false);
                return "";
            case "group":
                GroupConfig.validate(pairs(fields), broker().groupCoordinatorConfig(), broker().shareGroupConfig());
                return "";
            case "metrics":
                ClientMetricsConfigs.validate("subscription", pairs(fields));
                return "";
            case "properties":
                Properties loaded = new Properties();
                loaded.load(new StringReader(fields[0].translateEscapes()));
                return " " + new TreeMap<>(loaded);
            case "double":
                return " " + Double.parseDouble(fields[0]);
            default:
                throw new IllegalArgumentException("unknown case " + kind);
        }
    }

    static String describe(KafkaConfig config) {
        return " " + shown(config.listeners()) + " " + shown(config.effectiveAdvertisedBrokerListeners()) + " "
            + shown(config.effectiveAdvertisedControllerListeners()) + " " + config.logRetentionTimeMillis() + " "
            + config.logRollTimeMillis() + " " + config.logDirs() + " " + config.metadataLogDir();
    }

    static String shown(scala.collection.Seq<Endpoint> endpoints) {
        StringBuilder text = new StringBuilder("[");
        for (Endpoint endpoint : scala.jdk.javaapi.CollectionConverters.asJava(endpoints)) {
            text.append(' ').append(endpoint.listener()).append(' ').append(endpoint.securityProtocol());
            text.append(' ').append(endpoint.host()).append(' ').append(endpoint.port());
        }
        return text.append(']').toString();
    }

    static KafkaConfig broker() {
        Map<String, String> texts = new HashMap<>();
        texts.put("process.roles", "broker,controller");
        texts.put("node.id", "1");
        texts.put("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093");
        texts.put("controller.listener.names", "CONTROLLER");
        texts.put("controller.quorum.bootstrap.servers", "localhost:9093");
        return KafkaConfig.fromProps(properties(texts), false);
    }

    static Map<String, String> pairs(String[] fields) {
        Map<String, String> pairs = new HashMap<>();
        for (String field : fields) {
            int equals = field.indexOf('=');
            pairs.put(field.substring(0, equals), field.substring(equals + 1));
        }
        return pairs;
    }

    static Properties properties(Map<String, String> texts) {
        Properties properties = new Properties();
        properties.putAll(texts);
        return properties;
    }
}
