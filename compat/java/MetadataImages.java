import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.util.BatchFileReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Loads snapshots with Kafka's own image and says of each further one which parts differ from the first. */
public class MetadataImages {
    public static void main(String[] paths) throws Exception {
        Map<String, Object> first = parts(load(paths[0]));
        for (int i = 1; i < paths.length; i++) {
            Map<String, Object> other = parts(load(paths[i]));
            StringBuilder different = new StringBuilder();
            for (Map.Entry<String, Object> part : first.entrySet()) {
                if (!Objects.equals(part.getValue(), other.get(part.getKey()))) {
                    different.append(' ').append(part.getKey());
                }
            }
            System.out.println(different.length() == 0 ? "same" : "different:" + different);
        }
    }

    private static MetadataImage load(String path) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        try (BatchFileReader reader = new BatchFileReader.Builder().setPath(path).build()) {
            while (reader.hasNext()) {
                BatchFileReader.BatchAndType next = reader.next();
                if (!next.isControl()) {
                    for (ApiMessageAndVersion record : (List<ApiMessageAndVersion>) next.batch().records()) {
                        delta.replay(record.message());
                    }
                }
            }
        }
        return delta.apply(MetadataProvenance.EMPTY);
    }

    private static Map<String, Object> parts(MetadataImage image) {
        Map<String, Object> parts = new TreeMap<>();
        parts.put("features", image.features());
        parts.put("cluster", image.cluster());
        parts.put("topics", image.topics());
        parts.put("configs", image.configs());
        parts.put("clientQuotas", image.clientQuotas());
        parts.put("producerIds", image.producerIds());
        parts.put("acls", image.acls());
        parts.put("scram", image.scram());
        parts.put("delegationTokens", image.delegationTokens());
        return parts;
    }
}
