import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Prints every record of a topic as one line: what Apache's own consumer makes of it. */
public class ReadTopic {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("isolation.level", arguments[2]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "none");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(arguments[1]).forEach(
                each -> partitions.add(new TopicPartition(each.topic(), each.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(line(record));
                }
            }
        }
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(header.key() + "=" + text(header.value()));
        }
        return String.join(" ",
            Integer.toString(record.partition()),
            Long.toString(record.offset()),
            Long.toString(record.timestamp()),
            Integer.toString(record.timestampType().id),
            text(record.key()),
            text(record.value()),
            headers.isEmpty() ? "-" : String.join(",", headers));
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : "'" + Base64.getEncoder().encodeToString(bytes);
    }
}
