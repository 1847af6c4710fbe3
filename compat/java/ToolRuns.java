import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of Kafka's tools one after the other in one JVM: a line of JSON with the class, its arguments
 * and its standard input comes in, a line of JSON with the exit status and what was printed goes out.
 */
public class ToolRuns {
    /** Unwinds the stack of a tool that has exited. */
    private static final class Exited extends Error {
        Exited() {
            super(null, null, false, false);
        }
    }

    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static Integer exitStatus;

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream console = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> exit(status));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            console.println(mapper.writeValueAsString(run(mapper, mapper.readTree(line))));
        }
    }

    /** Some tools catch what unwinds them, report it and exit again: what counts is the first exit. */
    private static void exit(int status) {
        if (exitStatus == null) {
            exitStatus = status;
            PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
            System.setOut(nowhere);
            System.setErr(nowhere);
        }
        throw new Exited();
    }

    private static ObjectNode run(ObjectMapper mapper, JsonNode wanted) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(wanted.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        ObjectNode result = mapper.createObjectNode();
        result.put("status", statusOf(wanted));
        result.put("out", out.toString(StandardCharsets.UTF_8));
        result.put("err", err.toString(StandardCharsets.UTF_8));
        return result;
    }

    private static int statusOf(JsonNode wanted) {
        List<String> arguments = new ArrayList<>();
        wanted.get("arguments").forEach(argument -> arguments.add(argument.asText()));
        exitStatus = null;
        int status = 0;
        try {
            Class<?> tool = Class.forName(wanted.get("main").asText());
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException failure) {
            status = 1;
            failure.getCause().printStackTrace();
        } catch (ReflectiveOperationException failure) {
            status = 1;
            failure.printStackTrace();
        }
        // A tool that ends by exiting leaves its last work to these, as the console producer does its flush.
        List.copyOf(HOOKS).forEach(Runnable::run);
        HOOKS.clear();
        return exitStatus == null ? status : exitStatus;
    }
}
