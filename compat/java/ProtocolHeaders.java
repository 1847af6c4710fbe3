import java.util.Scanner;

import org.apache.kafka.common.message.ApiMessageType;

/**
 * Reads lines of "key version" and answers each with the versions of the request's and the response's header,
 * whether the highest version is unstable, and the lowest and highest version.
 */
public final class ProtocolHeaders {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextShort()) {
            ApiMessageType api = ApiMessageType.fromApiKey(lines.nextShort());
            short version = lines.nextShort();
            System.out.println(api.requestHeaderVersion(version) + " " + api.responseHeaderVersion(version) + " "
                + api.latestVersionUnstable() + " " + api.lowestSupportedVersion() + " "
                + api.highestSupportedVersion(true));
        }
    }
}
