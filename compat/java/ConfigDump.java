// Prints every configuration key that Apache Kafka's own classes define, as one JSON document, so that Headrace's
// tables can be compared with them.
//
// Usage: java -cp 'libs/*' ConfigDump.java

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class ConfigDump {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> dump = new TreeMap<>();
        dump.put("broker", keys(AbstractKafkaConfig.CONFIG_DEF));
        dump.put("broker_dynamic_only", keys(QuotaConfig.brokerQuotaConfigs()));
        dump.put("topic", keys(LogConfig.configDefCopy()));
        dump.put("group", keys(GroupConfig.CONFIG_DEF));
        dump.put("client_metrics", keys(clientMetrics()));
        dump.put("quota_user", keys(QuotaConfig.userAndClientQuotaConfigs()));
        dump.put("quota_ip", keys(QuotaConfig.ipConfigs()));
        dump.put("scram", keys(QuotaConfig.scramMechanismsPlusUserAndClientQuotaConfigs()));
        dump.put("dynamic_modes", new TreeMap<>(DynamicBrokerConfig.dynamicConfigUpdateModes()));
        dump.put("dynamic_names", new TreeSet<>(DynamicConfig.Broker.names()));
        dump.put("security", new TreeSet<>(DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS));
        dump.put("topic_synonyms", topicSynonyms());
        dump.put("group_synonyms", groupSynonyms());
        StringBuilder out = new StringBuilder();
        write(out, dump);
        System.out.println(out);
    }

    static ConfigDef clientMetrics() throws Exception {
        for (Field field : ClientMetricsConfigs.class.getDeclaredFields()) {
            if (field.getType() == ConfigDef.class) {
                field.setAccessible(true);
                return (ConfigDef) field.get(null);
            }
        }
        throw new IllegalStateException("ClientMetricsConfigs has no ConfigDef");
    }

    static Map<String, Object> keys(ConfigDef definition) {
        Map<String, Object> result = new TreeMap<>();
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            Map<String, Object> entry = new TreeMap<>();
            entry.put("type", key.type.name());
            entry.put("has_default", key.hasDefault());
            entry.put("default", key.hasDefault() ? text(key) : null);
            entry.put("importance", key.importance.name());
            entry.put("validator", key.validator == null ? null : key.validator.toString());
            entry.put("validator_class", key.validator == null ? null : key.validator.getClass().getSimpleName());
            if (key.validator instanceof ConfigDef.ValidList) {
                entry.put("list_empty_allowed", accepts(key, List.of()));
                entry.put("list_null_allowed", accepts(key, null));
            }
            entry.put("documented", key.documentation != null && !key.documentation.isEmpty());
            entry.put("internal", key.internalConfig);
            result.put(key.name, entry);
        }
        return result;
    }

    static boolean accepts(ConfigDef.ConfigKey key, Object value) {
        try {
            key.validator.ensureValid(key.name, value);
            return true;
        } catch (RuntimeException refused) {
            return false;
        }
    }

    static String text(ConfigDef.ConfigKey key) {
        if (key.defaultValue instanceof Password) {
            return ((Password) key.defaultValue).value();
        }
        return ConfigDef.convertToString(key.defaultValue, key.type);
    }

    static Map<String, Object> topicSynonyms() {
        Map<String, Object> result = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, synonyms) -> {
            List<Object> entries = new ArrayList<>();
            for (ConfigSynonym synonym : synonyms) {
                entries.add(List.of(synonym.name(), synonym.converter().apply("1")));
            }
            result.put(name, entries);
        });
        return result;
    }

    static Map<String, Object> groupSynonyms() {
        Map<String, Object> result = new TreeMap<>();
        for (Map.Entry<String, Optional<String>> entry : GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.entrySet()) {
            result.put(entry.getKey(), entry.getValue().orElse(null));
        }
        return result;
    }

    static void write(StringBuilder out, Object value) {
        if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(separator);
                write(out, entry.getKey());
                out.append(": ");
                write(out, entry.getValue());
                separator = ",\n";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Collection<?> items) {
            String separator = "[";
            for (Object item : items) {
                out.append(separator);
                write(out, item);
                separator = ", ";
            }
            out.append(items.isEmpty() ? "[]" : "]");
        } else if (value == null || value instanceof Boolean) {
            out.append(value);
        } else {
            out.append('"');
            for (char c : value.toString().toCharArray()) {
                if (c == '"' || c == '\\') {
                    out.append('\\').append(c);
                } else if (c < ' ') {
                    out.append(String.format("\\u%04x", (int) c));
                } else {
                    out.append(c);
                }
            }
            out.append('"');
        }
    }
}
