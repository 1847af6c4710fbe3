import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads lines of "class version hex" and answers each with what Kafka's class makes of the bytes: the bytes it
 * writes itself, a tab, and its values as JSON. "class version -" asks for an object as its constructor leaves it;
 * a fourth word is the version to write in if that is another. A refusal is answered with "!" and its reason.
 */
public final class ProtocolEcho {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(answer(line.split(" ", -1)));
        }
        answers.flush();
    }

    private static String answer(String[] words) throws Exception {
        Class<?> type = Class.forName(words[0]);
        short version = Short.parseShort(words[1]);
        Message message = (Message) type.getConstructor().newInstance();
        try {
            if (!words[2].equals("-")) {
                ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
                message.read(new ByteBufferAccessor(bytes), version);
                if (bytes.hasRemaining()) {
                    return "!" + bytes.remaining() + " bytes left over";
                }
            }
            short target = words.length > 3 ? Short.parseShort(words[3]) : version;
            return HexFormat.of().formatHex(written(message, target)) + "\t" + json(type, message, version);
        } catch (RuntimeException refusal) {
            return "!" + String.valueOf(refusal).replaceAll("\\s+", " ");
        }
    }

    private static byte[] written(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(bytes), cache, version);
        return bytes.array();
    }

    private static String json(Class<?> type, Message message, short version) throws Exception {
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        return converter.getMethod("write", type, short.class).invoke(null, message, version).toString();
    }
}
