"""SCRAM credentials given on the command line, as records: `SCRAM-SHA-256=[name=alice,password=secret]`."""

import hashlib
import hmac
from base64 import b64decode
from binascii import Error as InvalidBase64
from typing import Final

from headrace.errors import HeadraceError
from headrace.ports import Entropy
from headrace.protocol.disk_records.cluster_metadata import UserScramCredentialRecord

#: Mechanisms by name: the code in records, and the hash.
MECHANISMS: Final = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_SALT_BITS: Final = 130


class InvalidScramArgument(HeadraceError):
    """An argument that describes no credential."""


def scram_record(argument: str, entropy: Entropy) -> UserScramCredentialRecord:
    """The record of one credential."""
    mechanism, fields = _parse(argument)
    code, digest = MECHANISMS[mechanism]
    name = fields.pop("name", None)
    if name is None:
        raise InvalidScramArgument("You must supply 'name' to add-scram")
    given_salt = fields.pop("salt", None)
    iterations = _iterations(fields.pop("iterations", None), mechanism)
    password, salted_text = fields.pop("password", None), fields.pop("saltedpassword", None)
    if fields:
        raise InvalidScramArgument(f"Unknown SCRAM configurations: {', '.join(sorted(fields))}")
    if password is None and salted_text is None:
        raise InvalidScramArgument("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and given_salt is None:
        raise InvalidScramArgument("You must supply 'salt' with 'saltedpassword' to add-scram")
    salt = random_salt(entropy) if given_salt is None else _decode("salt", given_salt)
    if password is None:
        salted = _decode("saltedPassword", salted_text or "")
    else:
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    return UserScramCredentialRecord(
        name=name,
        mechanism=code,
        salt=salt,
        stored_key=hashlib.new(digest, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", digest),
        iterations=iterations,
    )


def random_salt(entropy: Entropy) -> bytes:
    """A salt of 130 random bits, spelt in base 36 as Kafka's tools do."""
    number = int.from_bytes(entropy.random_bytes((_SALT_BITS + 7) // 8), "big") % (1 << _SALT_BITS)
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits.encode()


def _parse(argument: str) -> tuple[str, dict[str, str]]:
    text = argument.strip()
    mechanism, equals, config = text.partition("=")
    if not equals:
        raise InvalidScramArgument(f"Failed to find equals sign in SCRAM argument '{text}'")
    if mechanism not in MECHANISMS:
        raise InvalidScramArgument(f"The add-scram mechanism {mechanism} is not supported.")
    if not config.startswith("["):
        raise InvalidScramArgument("Expected configuration string to start with [")
    if not config.endswith("]"):
        raise InvalidScramArgument("Expected configuration string to end with ]")
    fields = {}
    for component in config[1:-1].split(","):
        name, equals, value = component.partition("=")
        if not equals:
            raise InvalidScramArgument(f"No equals sign found in SCRAM component: {component}")
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        fields[name] = value
    return mechanism, fields


def _iterations(text: str | None, mechanism: str) -> int:
    if text is None:
        return ITERATIONS_MIN
    try:
        iterations = int(text)
    except ValueError:
        raise InvalidScramArgument(f"Failed to parse iterations count: {text}") from None
    if iterations < ITERATIONS_MIN:
        bound = f">= {ITERATIONS_MIN}"
    elif iterations > ITERATIONS_MAX:
        bound = f"<= {ITERATIONS_MAX}"
    else:
        return iterations
    shown = mechanism.replace("-", "_")
    raise InvalidScramArgument(f"The 'iterations' value must be {bound} for add-scram using {shown}")


def _decode(what: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except InvalidBase64:
        raise InvalidScramArgument(f"Failed to decode given {what}: {text}") from None
