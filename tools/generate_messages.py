"""Writes the message classes of `headrace.protocol` from the schema files inside Apache Kafka's jars.

    python tools/generate_messages.py DIRECTORY_OF_JARS

Only names, types, versions, tags and defaults are taken over. The output is committed: run this again when
the reference version of Kafka changes, and read the difference.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import zipfile
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tools.message_modules import Schema, api_table, disk_table, module_source

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROTOCOL = ROOT / "src" / "headrace" / "protocol"
SCHEMA_PATH = re.compile(r"(common/)?(message|metadata)/(\w+)\.json")

#: Which module of `disk_records` holds a schema, by the longest prefix of its name.
DISK_MODULES = {
    "LegacyOffsetCommit": "offsets",
    "OffsetCommit": "offsets",
    "GroupMetadata": "offsets",
    "ConsumerGroup": "consumer_groups",
    "ShareGroup": "share_groups",
    "StreamsGroup": "streams_groups",
    "TransactionLog": "transaction_state",
    "ShareSnapshot": "share_group_state",
    "ShareUpdate": "share_group_state",
    "ProducerSnapshot": "producer_snapshot",
    "QuorumStateData": "quorum_state",
    "LeaderChangeMessage": "control_records",
    "SnapshotHeaderRecord": "control_records",
    "SnapshotFooterRecord": "control_records",
    "KRaftVersionRecord": "control_records",
    "VotersRecord": "control_records",
    "EndTxnMarker": "control_records",
    "ControlRecordTypeSchema": "control_records",
    "DefaultPrincipalData": "principal",
    "ConsumerProtocol": "consumer_protocol",
    "Remote": "remote_log_metadata",
}

DISK_TITLES = {
    "cluster_metadata": "Records of `__cluster_metadata`",
    "offsets": "Records of `__consumer_offsets`: offsets and classic groups",
    "consumer_groups": "Records of `__consumer_offsets`: consumer groups",
    "share_groups": "Records of `__consumer_offsets`: share groups",
    "streams_groups": "Records of `__consumer_offsets`: streams groups",
    "transaction_state": "Records of `__transaction_state`",
    "share_group_state": "Records of `__share_group_state`",
    "producer_snapshot": "The `.snapshot` file of a partition's producers",
    "quorum_state": "The `quorum-state` file",
    "control_records": "Keys and values of control records",
    "principal": "A principal as the envelope carries it",
    "consumer_protocol": "What consumers of a classic group tell each other",
    "remote_log_metadata": "Records of `__remote_log_metadata`",
}


def read_schemas(jars: pathlib.Path) -> list[Schema]:
    """Every schema in Kafka's jars, in the order of their names."""
    schemas = []
    for jar in sorted(jars.glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if SCHEMA_PATH.fullmatch(name):
                    text = archive.read(name).decode()
                    schemas.append(Schema(_without_comments(text), jar=jar.name.rsplit("-", 1)[0]))
    if not schemas:
        raise SystemExit(f"no schemas found: {jars} holds no kafka-*.jar with message schemas")
    return sorted(schemas, key=lambda schema: schema.name)


def _without_comments(text: str) -> dict[str, Any]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("//"))
    document: dict[str, Any] = json.loads("\n".join(lines))
    return document


def disk_module_of(schema: Schema) -> str:
    """The module of `disk_records` that a schema belongs to."""
    if schema.type == "metadata" and schema.jar == "kafka-metadata":
        return "cluster_metadata"
    fitting = [prefix for prefix in DISK_MODULES if schema.name.startswith(prefix)]
    if not fitting:
        raise SystemExit(f"{schema.name} ({schema.jar}) has no module: add it to DISK_MODULES")
    return DISK_MODULES[max(fitting, key=len)]


def generate(schemas: list[Schema]) -> dict[str, str]:
    """Every file to write, by its path within the package, with its text before formatting."""
    files: dict[str, str] = {}
    usable = [schema for schema in schemas if schema.has_versions]
    apis: dict[str, list[Schema]] = {}
    disk: dict[str, list[Schema]] = {}
    headers = []
    for schema in usable:
        if schema.type in ("request", "response"):
            apis.setdefault(schema.api_module, []).append(schema)
        elif schema.type == "header":
            headers.append(schema)
        else:
            disk.setdefault(disk_module_of(schema), []).append(schema)
    for module, parts in apis.items():
        title = f"{parts[0].api_name}, API key {parts[0].api_key}"
        files[f"messages/{module}.py"] = module_source(title, parts)
    files["messages/headers.py"] = module_source("Request and response headers", headers)
    for module, parts in disk.items():
        files[f"disk_records/{module}.py"] = module_source(DISK_TITLES[module], parts)
    for package, title in (("messages", "requests and responses"), ("disk_records", "what is kept on disk")):
        files[f"{package}/__init__.py"] = (
            f'"""The schemas of {title}: generated by `tools/generate_messages.py`, imported one by one."""\n'
        )
    files["api_table.py"] = api_table(schemas)
    files["record_table.py"] = disk_table(disk)
    return files


def write_formatted(files: dict[str, str], directory: pathlib.Path) -> None:
    """Write the files below `directory` in the house format."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    paths = [str(directory / name) for name in files]
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *settings, *paths], check=True)


def main() -> None:
    """Write the modules and remove those that have no schema any more."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "jars", type=pathlib.Path, help="directory holding kafka-clients-*.jar and companions"
    )
    files = generate(read_schemas(parser.parse_args().jars))
    for package in ("messages", "disk_records"):
        for stale in (PROTOCOL / package).glob("*.py"):
            if f"{package}/{stale.name}" not in files:
                stale.unlink()
    write_formatted(files, PROTOCOL)
    print(f"wrote {len(files)} files")


if __name__ == "__main__":
    main()
