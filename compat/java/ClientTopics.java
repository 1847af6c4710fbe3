// Reads and writes topics with Apache Kafka's own consumer and producer.
//
//   read BOOTSTRAP TOPIC...     every record: topic, partition, offset, timestamp, key, value, headers
//   produce BOOTSTRAP TOPIC     one key per input line, to where the default partitioner sends it: partition, key
// Answers are lines of tab-separated fields; bytes are hexadecimal, "-" where there are none, headers are
// name=bytes with commas between.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class ClientTopics {
    public static void main(String[] words) throws Exception {
        if (words[0].equals("read")) {
            read(words[1], List.of(words).subList(2, words.length));
        } else {
            produce(words[1], words[2]);
        }
    }

    private static void read(String bootstrap, List<String> topics) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : topics) {
                consumer.partitionsFor(topic).forEach(found ->
                    partitions.add(new TopicPartition(topic, found.partition())));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<byte[], byte[]> found : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(String.join("\t", found.topic(), "" + found.partition(),
                        "" + found.offset(), "" + found.timestamp(), hex(found.key()), hex(found.value()),
                        headers(found)));
                }
            }
        }
    }

    private static void produce(String bootstrap, String topic) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        ByteArraySerializer bytes = new ByteArraySerializer();
        List<String> keys = new ArrayList<>();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes);
                BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String key = line.trim();
                keys.add(key);
                byte[] parsed = key.equals("\"\"") ? new byte[0] : HexFormat.of().parseHex(key);
                sent.add(producer.send(new ProducerRecord<>(topic, parsed, new byte[0])));
            }
            for (int place = 0; place < keys.size(); place++) {
                System.out.println(sent.get(place).get().partition() + "\t" + keys.get(place));
            }
        }
    }

    private static String headers(ConsumerRecord<byte[], byte[]> found) {
        List<String> parts = new ArrayList<>();
        for (Header header : found.headers()) {
            parts.add(header.key() + "=" + hex(header.value()));
        }
        return String.join(",", parts);
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
    }
}
