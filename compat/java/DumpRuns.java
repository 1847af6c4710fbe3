import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.DumpLogSegments;

/** Runs Kafka's dump tool many times in one JVM: a line of tab-separated arguments in, a line of JSON out. */
public class DumpRuns {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream console = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> {
            throw new IllegalStateException("exit " + status);
        });
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            console.println(mapper.writeValueAsString(run(mapper, line.split("\t"))));
        }
    }

    private static ObjectNode run(ObjectMapper mapper, String[] arguments) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream outBefore = System.out;
        PrintStream errBefore = System.err;
        ObjectNode result = mapper.createObjectNode();
        System.setOut(new PrintStream(out, false, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, false, StandardCharsets.UTF_8));
        try {
            DumpLogSegments.main(arguments);
            result.putNull("failure");
        } catch (Throwable failure) {
            result.put("failure", failure.toString());
        } finally {
            System.out.flush();
            System.err.flush();
            System.setOut(outBefore);
            System.setErr(errBefore);
        }
        result.put("out", out.toString(StandardCharsets.UTF_8));
        result.put("err", err.toString(StandardCharsets.UTF_8));
        return result;
    }
}
