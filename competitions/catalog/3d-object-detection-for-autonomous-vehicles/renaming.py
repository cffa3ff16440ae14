"""Drives under other names: tables without anything by which Kaggle's public tables say which sample is which.

Tokens, names of files, drives and cars are replaced, tables are shuffled, and the time of a drive begins with zero.
Where the car is cannot be changed, because boxes are in world coordinates.
"""

from hashlib import sha256
from typing import Any

from competitions.preparing.holdout import secret_random

Records = list[dict[str, Any]]
TABLES = ("log", "scene", "sample", "sample_data", "calibrated_sensor", "ego_pose")
"""The tables whose tokens are replaced. A scene has the token of its log, also afterwards."""
BLANK = ("date_captured", "logfile", "vehicle", "description")
"""Fields that say which drive it is."""
OF_ANSWERS = ("anns",)
"""Fields of samples that count their boxes."""


def renamed(tables: dict[str, Records]) -> tuple[dict[str, Records], dict[str, str], dict[str, str]]:
    """The tables of some drives under other names; the new token of each old one, and the new name of each file."""
    random = secret_random(record["token"] for record in tables["sample_data"])
    shuffled = {name: random.sample(records, len(records)) for name, records in tables.items()}
    tokens = {
        record["token"]: sha256(f"{name} {number}".encode()).hexdigest()
        for name in TABLES
        for number, record in enumerate(shuffled[name])
    }
    files: dict[str, str] = {}
    for record in shuffled["sample_data"]:
        folder, _, name = record["filename"].rpartition("/")
        files.setdefault(record["filename"], f"{folder}/{len(files):06}.{name.rpartition('.')[2]}")
    starts, drives = _starts(tables)

    def changed(name: str, record: dict[str, Any]) -> dict[str, Any]:
        new = {field: _replaced(value, tokens) for field, value in record.items() if field not in OF_ANSWERS}
        new |= {field: "" for field in BLANK if field in new}
        if name == "sample_data":
            new["filename"] = files[record["filename"]]
        if record["token"] in drives:
            new["timestamp"] = record["timestamp"] - starts[drives[record["token"]]]
        if name == "scene":
            new["name"] = f"scene-{new['token'][:8]}"
        return new

    return (
        {name: [changed(name, original) for original in records] for name, records in shuffled.items()},
        tokens,
        files,
    )


def _starts(tables: dict[str, Records]) -> tuple[dict[str, float], dict[str, str]]:
    """The first moment of each drive, and the drive of each sample, file and pose."""
    drives = {sample["token"]: sample["scene_token"] for sample in tables["sample"]}
    for file in tables["sample_data"]:
        drives[file["token"]] = drives[file["ego_pose_token"]] = drives[file["sample_token"]]
    starts: dict[str, float] = {}
    for record in (*tables["sample"], *tables["sample_data"], *tables["ego_pose"]):
        drive = drives[record["token"]]
        starts[drive] = min(starts.get(drive, record["timestamp"]), record["timestamp"])
    return starts, drives


def _replaced(value: Any, tokens: dict[str, str]) -> Any:
    """A value of a record, in which tokens are replaced, also those in lists and objects."""
    if isinstance(value, str):
        return tokens.get(value, value)
    if isinstance(value, list):
        return [_replaced(element, tokens) for element in value]
    if isinstance(value, dict):
        return {field: _replaced(element, tokens) for field, element in value.items()}
    return value
