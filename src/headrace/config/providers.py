"""Values from elsewhere: `${name:path:key}` looked up in environment variables, files and directories.

The providers are Kafka's three, by their class names. The environment and the disk come in as arguments.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Final, Protocol

from headrace.config.properties import MalformedProperties, load_properties
from headrace.config.refusals import InvalidConfig, invalid_value
from headrace.ports import Disk

PROVIDERS_KEY: Final = "config.providers"
_VARIABLE = r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}"


class Provider(Protocol):
    """One source of values."""

    def look_up(self, path: str, key: str) -> str | None:
        """The value of a key, or None if there is none: the variable then stays as it is written."""


class EnvironmentProvider:
    """Environment variables, perhaps only those whose names match a pattern."""

    __slots__ = ("_allowed", "_environment")

    def __init__(self, environment: Mapping[str, str], parameters: Mapping[str, str]) -> None:
        self._environment = environment
        pattern = parameters.get("allowlist.pattern", ".*")
        try:
            self._allowed = re.compile(pattern)
        except re.error as problem:
            raise invalid_value(
                "allowlist.pattern", pattern, f"Not a regular expression: {problem}"
            ) from None

    def look_up(self, path: str, key: str) -> str | None:
        if path:
            raise InvalidConfig(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return self._environment.get(key) if self._allowed.fullmatch(key) else None


class FileProvider:
    """Properties files, perhaps only those below certain directories."""

    __slots__ = ("_allowed", "_disk", "_read")

    def __init__(self, disk: Disk, parameters: Mapping[str, str]) -> None:
        self._disk = disk
        self._allowed = AllowedPaths(disk, parameters.get("allowed.paths", ""))
        self._read: dict[str, dict[str, str]] = {}

    def look_up(self, path: str, key: str) -> str | None:
        allowed = self._allowed.resolve(path) if path else None
        if allowed is None:
            return None
        if allowed not in self._read:
            try:
                self._read[allowed] = load_properties(self._disk.read(allowed), "utf-8")
            except (OSError, UnicodeDecodeError, MalformedProperties):
                raise InvalidConfig(f"Could not read properties from file {path}") from None
        return self._read[allowed].get(key)


class DirectoryProvider:
    """Directories in which each file is a key and its content the value."""

    __slots__ = ("_allowed", "_disk")

    def __init__(self, disk: Disk, parameters: Mapping[str, str]) -> None:
        self._disk = disk
        self._allowed = AllowedPaths(disk, parameters.get("allowed.paths", ""))

    def look_up(self, path: str, key: str) -> str | None:
        allowed = self._allowed.resolve(path) if path else None
        if allowed is None or not self._disk.is_directory(allowed):
            return None
        file = posixpath.join(allowed, key)
        if "/" in key or not self._disk.exists(file) or self._disk.is_directory(file):
            return None
        try:
            return self._disk.read(file).decode("utf-8")
        except (OSError, UnicodeDecodeError):
            raise InvalidConfig(f"Could not read file {file} for property {key}") from None


class AllowedPaths:
    """The directories and files that a provider may look into; all if none are named."""

    __slots__ = ("_paths",)

    def __init__(self, disk: Disk, text: str) -> None:
        self._paths = [posixpath.normpath(path) for path in text.split(",")] if text else None
        for path in self._paths or ():
            if not posixpath.isabs(path):
                raise InvalidConfig(f"Path {path} is not absolute")
            if not disk.exists(path):
                raise InvalidConfig(f"Path {path} does not exist")

    def resolve(self, path: str) -> str | None:
        """The path to open, or None if it is not allowed."""
        if self._paths is None:
            return path
        normal = posixpath.normpath(path)
        parents = (path.rstrip("/") + "/" for path in self._paths)
        return normal if any(f"{normal}/".startswith(parent) for parent in parents) else None


def resolve_variables(
    properties: Mapping[str, str], disk: Disk, environment: Mapping[str, str]
) -> dict[str, str]:
    """The properties with every variable replaced that a configured provider knows, once through."""
    providers = _make_providers(properties, disk, environment)

    def replace(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        value = provider.look_up(match[2] or "", match[3]) if provider else None
        return match[0] if value is None else value

    if not providers:
        return dict(properties)
    return {key: re.sub(_VARIABLE, replace, value) for key, value in properties.items()}


def _make_providers(
    properties: Mapping[str, str], disk: Disk, environment: Mapping[str, str]
) -> dict[str, Provider]:
    providers: dict[str, Provider] = {}
    names = properties.get(PROVIDERS_KEY, "")
    for name in names.split(",") if names else ():
        class_key = f"{PROVIDERS_KEY}.{name}.class"
        if class_key in properties:
            prefix = f"{PROVIDERS_KEY}.{name}.param."
            parameters = {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}
            providers[name] = _make_provider(class_key, properties[class_key], parameters, disk, environment)
    return providers


def _make_provider(
    class_key: str, class_name: str, parameters: Mapping[str, str], disk: Disk, environment: Mapping[str, str]
) -> Provider:
    match class_name.removeprefix("org.apache.kafka.common.config.provider."):
        case "EnvVarConfigProvider":
            return EnvironmentProvider(environment, parameters)
        case "FileConfigProvider":
            return FileProvider(disk, parameters)
        case "DirectoryConfigProvider":
            return DirectoryProvider(disk, parameters)
    raise invalid_value(
        class_key, class_name, "Could not load config provider class or one of its dependencies"
    )
