"""Values from environment variables, files and directories."""

import pytest

from headrace.config.providers import resolve_variables
from headrace.config.refusals import InvalidConfig
from headrace.testing.memory_disk import MemoryDisk

PACKAGE = "org.apache.kafka.common.config.provider."
PROVIDERS = {
    "config.providers": "env,file,dir",
    "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
    "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
}


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/run/secrets")
    disk.replace("/run/secrets/token", b"t0ken")
    disk.replace("/run/app.properties", "user=é\nport = 9092".encode())
    return disk


def resolved(value: str, disk: MemoryDisk, providers: dict[str, str] | None = None) -> str:
    texts = (PROVIDERS if providers is None else PROVIDERS | providers) | {"key": value}
    return resolve_variables(texts, disk, {"HOME": "/home/me", "PATH": "/bin"})["key"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${env:HOME}/data", "/home/me/data"),
        ("${file:/run/app.properties:port}", "9092"),
        ("${file:/run/app.properties:user}-${env:PATH}", "é-/bin"),
        ("${dir:/run/secrets:token}", "t0ken"),
        ("${env:MISSING}", "${env:MISSING}"),
        ("${file:/run/app.properties:none}", "${file:/run/app.properties:none}"),
        ("${dir:/run/nowhere:token}", "${dir:/run/nowhere:token}"),
        ("${dir:/run:secrets}", "${dir:/run:secrets}"),
        ("${other:a:b}", "${other:a:b}"),
        ("$HOME ${HOME}", "$HOME ${HOME}"),
    ],
)
def test_a_variable_is_replaced_if_a_provider_knows_it(value: str, expected: str, disk: MemoryDisk) -> None:
    assert resolved(value, disk) == expected


def test_without_providers_nothing_is_replaced(disk: MemoryDisk) -> None:
    assert resolve_variables({"a": "${env:HOME}"}, disk, {"HOME": "x"}) == {"a": "${env:HOME}"}


def test_a_replaced_text_is_not_looked_at_again(disk: MemoryDisk) -> None:
    texts = PROVIDERS | {"a": "${env:A}"}
    assert resolve_variables(texts, disk, {"A": "${env:B}", "B": "no"})["a"] == "${env:B}"


def test_an_allow_list_keeps_other_variables_and_paths_out(disk: MemoryDisk) -> None:
    limits = {
        "config.providers.env.param.allowlist.pattern": "HO.*",
        "config.providers.file.param.allowed.paths": "/run/secrets",
        "config.providers.dir.param.allowed.paths": "/run/secrets",
    }
    assert resolved("${env:HOME} ${env:PATH}", disk, limits) == "/home/me ${env:PATH}"
    assert resolved("${file:/run/app.properties:port}", disk, limits) == "${file:/run/app.properties:port}"
    assert resolved("${file:/run/secrets/../app.properties:port}", disk, limits).startswith("${file")
    assert resolved("${dir:/run/secrets:token}", disk, limits) == "t0ken"
    assert resolved("${dir:/run/secrets:../app.properties}", disk, limits).startswith("${dir")


@pytest.mark.parametrize(
    ("extra", "value", "reason"),
    [
        ({"config.providers.env.class": "com.example.Vault"}, "x", "Could not load config provider class"),
        ({}, "${env:/etc:HOME}", "Path is not supported for EnvVarConfigProvider, invalid value '/etc'"),
        ({}, "${file:/missing:a}", "Could not read properties from file /missing"),
        ({"config.providers.file.param.allowed.paths": "run"}, "x", "Path run is not absolute"),
        ({"config.providers.dir.param.allowed.paths": "/no"}, "x", "Path /no does not exist"),
        ({"config.providers.env.param.allowlist.pattern": "("}, "x", "Not a regular expression"),
    ],
)
def test_a_provider_that_cannot_work_is_refused(
    extra: dict[str, str], value: str, reason: str, disk: MemoryDisk
) -> None:
    with pytest.raises(InvalidConfig, match=reason.replace("(", "\\(")):
        resolved(value, disk, extra)
