"""Keys of security. Most may be set for a single listener with the prefix `listener.name.<name>.`."""

from headrace.config.keys.notation import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    SHORT,
    STRING,
    key,
)
from headrace.config.rules import AnyText, ListOf, OneOf, OneOfAnyCase, Range

KEYS = (
    key("ssl.protocol", STRING, "TLSv1.3", MEDIUM, update=PER_BROKER).means(
        "The TLS version that is preferred."
    ),
    key("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), MEDIUM, ListOf(), PER_BROKER).means(
        "The TLS versions that are accepted."
    ),
    key("ssl.cipher.suites", LIST, (), MEDIUM, ListOf(), PER_BROKER).means(
        "The cipher suites that are accepted; empty for the library's choice."
    ),
    key("ssl.client.auth", STRING, "none", MEDIUM, OneOf("required", "requested", "none"), PER_BROKER).means(
        "Whether clients must show a certificate (`required`), may (`requested`), or need not (`none`)."
    ),
    key("ssl.keystore.type", STRING, "JKS", MEDIUM, update=PER_BROKER).means(
        "Form of the key store: `PEM`, `PKCS12` or `JKS`."
    ),
    key("ssl.keystore.location", STRING, None, MEDIUM, update=PER_BROKER).means(
        "File with the node's private key and certificate."
    ),
    key("ssl.keystore.password", PASSWORD, None, MEDIUM, update=PER_BROKER).means(
        "Password of the key store file."
    ),
    key("ssl.key.password", PASSWORD, None, MEDIUM, update=PER_BROKER).means("Password of the private key."),
    key("ssl.keystore.key", PASSWORD, None, MEDIUM, update=PER_BROKER).means(
        "The private key itself, as PEM text, instead of a file."
    ),
    key("ssl.keystore.certificate.chain", PASSWORD, None, MEDIUM, update=PER_BROKER).means(
        "The node's certificate and those that signed it, as PEM text, instead of a file."
    ),
    key("ssl.truststore.type", STRING, "JKS", MEDIUM, update=PER_BROKER).means(
        "Form of the trust store: `PEM`, `PKCS12` or `JKS`."
    ),
    key("ssl.truststore.location", STRING, None, MEDIUM, update=PER_BROKER).means(
        "File with the certificates that are trusted."
    ),
    key("ssl.truststore.password", PASSWORD, None, MEDIUM, update=PER_BROKER).means(
        "Password of the trust store file."
    ),
    key("ssl.truststore.certificates", PASSWORD, None, MEDIUM, update=PER_BROKER).means(
        "The certificates that are trusted, as PEM text, instead of a file."
    ),
    key("ssl.endpoint.identification.algorithm", STRING, "https", LOW, update=PER_BROKER).means(
        "How a server's name is compared with its certificate when this node connects: `https`, or empty "
        "for not at all."
    ),
    key("ssl.principal.mapping.rules", STRING, "DEFAULT", LOW).means(
        "Rules that make a user name of a certificate's subject."
    ),
    key("ssl.allow.dn.changes", BOOLEAN, False, LOW).means(
        "Whether a key store that is replaced at run time may name another subject."
    ),
    key("ssl.allow.san.changes", BOOLEAN, False, LOW).means(
        "Whether a key store that is replaced at run time may lack alternative names of the former one."
    ),
    key("ssl.provider", STRING, None, MEDIUM, update=PER_BROKER, inert=True).means(
        "Name of a Java security provider. No effect in Headrace: TLS comes from the system's OpenSSL."
    ),
    key("ssl.keymanager.algorithm", STRING, "SunX509", MEDIUM, update=PER_BROKER, inert=True).means(
        "Algorithm of Java's key manager. No effect in Headrace: TLS comes from the system's OpenSSL."
    ),
    key("ssl.trustmanager.algorithm", STRING, "PKIX", MEDIUM, update=PER_BROKER, inert=True).means(
        "Algorithm of Java's trust manager. No effect in Headrace: TLS comes from the system's OpenSSL."
    ),
    key("ssl.secure.random.implementation", STRING, None, LOW, update=PER_BROKER, inert=True).means(
        "Java's source of random numbers for TLS. No effect in Headrace: TLS comes from the system's OpenSSL."
    ),
    key("ssl.engine.factory.class", CLASS, None, LOW, update=PER_BROKER).means(
        "A Java class that makes TLS engines. Headrace loads no Java classes, so this cannot be set."
    ),
    key("security.providers", STRING, None, LOW, inert=True).means(
        "Java classes that provide security algorithms. No effect in Headrace: it loads no Java classes."
    ),
    key("sasl.enabled.mechanisms", LIST, ("GSSAPI",), MEDIUM, ListOf(), PER_BROKER).means(
        "The SASL mechanisms that clients may use."
    ),
    key("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", MEDIUM, update=PER_BROKER).means(
        "The SASL mechanism that brokers use among each other."
    ),
    key("sasl.jaas.config", PASSWORD, None, MEDIUM, update=PER_BROKER).means(
        "Login of a SASL mechanism in JAAS form. With the prefix `listener.name.<name>.<mechanism>.` it "
        "counts for that mechanism of that listener."
    ),
    key("sasl.server.callback.handler.class", CLASS, None, MEDIUM).means(
        "A Java class that checks SASL credentials. Headrace loads no Java classes, so this cannot be set."
    ),
    key("sasl.client.callback.handler.class", CLASS, None, MEDIUM).means(
        "A Java class that supplies SASL credentials. Headrace loads no Java classes, so this cannot be set."
    ),
    key("sasl.login.callback.handler.class", CLASS, None, MEDIUM).means(
        "A Java class that supplies logins. Headrace loads no Java classes, so this cannot be set."
    ),
    key("sasl.login.class", CLASS, None, MEDIUM).means(
        "A Java class for logins. Headrace loads no Java classes, so this cannot be set."
    ),
    key("sasl.server.max.receive.size", INT, 524_288, MEDIUM).means(
        "The largest message that is read while a client authenticates, in bytes."
    ),
    key("connections.max.reauth.ms", LONG, 0, MEDIUM).means(
        "Time after which a client must authenticate again, in milliseconds; 0 for never."
    ),
    key(
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        MEDIUM,
        update=PER_BROKER,
    ).means("The class that makes a user of a connection. Only the default is known."),
    key("authorizer.class.name", STRING, "", LOW, AnyText()).means(
        "The authoriser that decides who may do what; empty lets everyone do everything."
    ),
    key("sasl.kerberos.service.name", STRING, None, MEDIUM, update=PER_BROKER).means(
        "The Kerberos service name of the brokers."
    ),
    key("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", MEDIUM, update=PER_BROKER).means(
        "Path of the `kinit` command."
    ),
    key("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, MEDIUM, update=PER_BROKER).means(
        "Share of a ticket's life after which it is renewed."
    ),
    key("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, MEDIUM, update=PER_BROKER).means(
        "Share of the renewal time that is added at random."
    ),
    key("sasl.kerberos.min.time.before.relogin", LONG, 60000, MEDIUM, update=PER_BROKER).means(
        "Least time between two renewals of a ticket, in milliseconds."
    ),
    key("sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), MEDIUM, ListOf(), PER_BROKER).means(
        "Rules that make a user name of a Kerberos principal; the first that fits counts."
    ),
    key("sasl.login.refresh.window.factor", DOUBLE, 0.8, MEDIUM, update=PER_BROKER).means(
        "Share of a token's life after which a new one is fetched."
    ),
    key("sasl.login.refresh.window.jitter", DOUBLE, 0.05, MEDIUM, update=PER_BROKER).means(
        "Share of a token's life that is added to the refresh time at random."
    ),
    key("sasl.login.refresh.min.period.seconds", SHORT, 60, MEDIUM, update=PER_BROKER).means(
        "Least time between two token refreshes, in seconds."
    ),
    key("sasl.login.refresh.buffer.seconds", SHORT, 300, MEDIUM, update=PER_BROKER).means(
        "How long before a token ends it must have been refreshed, in seconds."
    ),
    key("sasl.login.connect.timeout.ms", INT, None, LOW).means(
        "How long a connection to the token provider may take to come about, in milliseconds."
    ),
    key("sasl.login.read.timeout.ms", INT, None, LOW).means(
        "How long an answer of the token provider may take, in milliseconds."
    ),
    key("sasl.login.retry.backoff.ms", LONG, 100, LOW).means(
        "First pause before a request to the token provider is sent again, in milliseconds."
    ),
    key("sasl.login.retry.backoff.max.ms", LONG, 10000, LOW).means(
        "Longest pause before a request to the token provider is sent again, in milliseconds."
    ),
    key("delegation.token.secret.key", PASSWORD, None, MEDIUM).means(
        "The secret from which delegation tokens are made; the same on every node."
    ),
    key("delegation.token.max.lifetime.ms", LONG, 604_800_000, MEDIUM, Range(1)).means(
        "How long a delegation token can be renewed, in milliseconds."
    ),
    key("delegation.token.expiry.time.ms", LONG, 86_400_000, MEDIUM, Range(1)).means(
        "How long a delegation token is valid before it must be renewed, in milliseconds."
    ),
    key("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, LOW, Range(1)).means(
        "Time between two looks for expired delegation tokens, in milliseconds."
    ),
    key("sasl.oauthbearer.token.endpoint.url", STRING, None, MEDIUM).means(
        "Where tokens are fetched, as a URL."
    ),
    key("sasl.oauthbearer.jwks.endpoint.url", STRING, None, MEDIUM).means(
        "Where the provider's public keys are fetched, as a URL or a file URL."
    ),
    key("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, LOW).means(
        "Time between two fetches of the provider's public keys, in milliseconds."
    ),
    key("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, LOW).means(
        "First pause before the public keys are fetched again after a failure, in milliseconds."
    ),
    key("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10000, LOW).means(
        "Longest pause before the public keys are fetched again after a failure, in milliseconds."
    ),
    key("sasl.oauthbearer.clock.skew.seconds", INT, 30, LOW).means(
        "How far the provider's clock may differ from the node's, in seconds."
    ),
    key("sasl.oauthbearer.expected.audience", LIST, (), HIGH, ListOf()).means(
        "The audiences of which a token must name one; empty accepts every audience."
    ),
    key("sasl.oauthbearer.expected.issuer", STRING, None, HIGH).means(
        "The issuer that a token must name; absent accepts every issuer."
    ),
    key("sasl.oauthbearer.scope", STRING, None, MEDIUM).means(
        "The scope that is asked for when a token is fetched."
    ),
    key("sasl.oauthbearer.scope.claim.name", STRING, "scope", LOW).means(
        "The token's claim that holds the scope."
    ),
    key("sasl.oauthbearer.sub.claim.name", STRING, "sub", LOW).means(
        "The token's claim that holds the user name."
    ),
    key("sasl.oauthbearer.client.credentials.client.id", STRING, None, MEDIUM).means(
        "The client id with which tokens are fetched."
    ),
    key("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, MEDIUM).means(
        "The client secret with which tokens are fetched."
    ),
    key(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        MEDIUM,
    ).means("The class that fetches tokens. Only the default is known."),
    key(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        MEDIUM,
    ).means("The class that checks tokens. Only the default is known."),
    key(
        "sasl.oauthbearer.assertion.algorithm", STRING, "RS256", MEDIUM, OneOfAnyCase("ES256", "RS256")
    ).means("The signature of assertions made by this node: `RS256` or `ES256`."),
    key("sasl.oauthbearer.assertion.claim.aud", STRING, None, MEDIUM).means(
        "The audience that an assertion names."
    ),
    key("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, LOW, Range(0, 86400)).means(
        "How long an assertion is valid, in seconds."
    ),
    key("sasl.oauthbearer.assertion.claim.iss", STRING, None, MEDIUM).means(
        "The issuer that an assertion names."
    ),
    key("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, MEDIUM).means(
        "Whether an assertion carries an id of its own."
    ),
    key("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, LOW, Range(0, 3600)).means(
        "How long before its making an assertion becomes valid, in seconds."
    ),
    key("sasl.oauthbearer.assertion.claim.sub", STRING, None, MEDIUM).means(
        "The subject that an assertion names."
    ),
    key("sasl.oauthbearer.assertion.file", STRING, None, MEDIUM).means(
        "File with an assertion made elsewhere."
    ),
    key("sasl.oauthbearer.assertion.private.key.file", STRING, None, MEDIUM).means(
        "File with the private key, as PEM, that signs assertions."
    ),
    key("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, MEDIUM).means(
        "Password of that private key."
    ),
    key("sasl.oauthbearer.assertion.template.file", STRING, None, MEDIUM).means(
        "File with headers and claims that are added to assertions."
    ),
)
