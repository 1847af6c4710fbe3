"""Java's properties files: read and written exactly as Java does, so that a file serves either server.

Only texts and bytes here; where they come from is the caller's business.
"""

from collections.abc import Iterable, Iterator, Mapping

from headrace.errors import HeadraceError

_WHITE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


class MalformedProperties(HeadraceError):
    """A properties text that Java would refuse as well."""


def load_properties(data: bytes, encoding: str = "latin-1") -> dict[str, str]:
    """The keys and values of a properties file; Java reads these as ISO-8859-1 unless told otherwise."""
    return parse_properties(data.decode(encoding))


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a properties text; the last of equal keys counts."""
    return dict(map(_split, _logical_lines(text)))


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """The `key=value` arguments of a command line; a value may have an equals sign or be missing."""
    pairs = (argument.partition("=") for argument in arguments)
    return {key: value for key, _, value in pairs}


def format_properties(values: Mapping[str, str], comments: Iterable[str] = ()) -> str:
    """A properties text in the order given, after comment lines."""
    lines = [f"#{comment}\n" for comment in comments]
    lines += [f"{_escape(key, key=True)}={_escape(value, key=False)}\n" for key, value in values.items()]
    return "".join(lines)


def _natural_lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, with continued ones joined."""
    line = ""
    continued = False
    for natural in _natural_lines(text):
        piece = natural.lstrip(_WHITE)
        if not line and (piece.startswith(("#", "!")) or (not piece and not continued)):
            # Nothing has been read of the line yet, so this is a comment or a blank line.
            continue
        backslashes = len(piece) - len(piece.rstrip("\\"))
        continued = backslashes % 2 == 1
        line += piece[:-1] if continued else piece
        if not continued:
            if line:
                yield line
            line = ""
    if line:
        yield line


def _split(line: str) -> tuple[str, str]:
    end = _key_end(line)
    rest = line[end:].lstrip(_WHITE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_WHITE)
    return _unescape(line[:end]), _unescape(rest)


def _key_end(line: str) -> int:
    escaped = False
    for position, character in enumerate(line):
        if not escaped and character in "=: \t\f":
            return position
        escaped = character == "\\" and not escaped
    return len(line)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    result: list[str] = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            result.append(character)
            continue
        escape = next(characters, "")
        if escape == "u":
            result.append(_unicode_escape("".join(next(characters, "") for _ in range(4))))
        else:
            result.append(_ESCAPES.get(escape, escape))
    # Java's characters are halves of UTF-16; two escapes may stand for one character beyond them.
    return "".join(result).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode_escape(digits: str) -> str:
    if len(digits) != 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise MalformedProperties("Malformed \\uxxxx encoding.")
    return chr(int(digits, 16))


def _escape(text: str, *, key: bool) -> str:
    escaped = "".join(map(_escape_character, text))
    if key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape_character(character: str) -> str:
    if character in "\\=:#!":
        return "\\" + character
    if character in _UNESCAPES:
        return _UNESCAPES[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
