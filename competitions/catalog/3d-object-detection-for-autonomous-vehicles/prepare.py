"""Hold out whole drives ("logs") with the rows of other tables that tokens link to them.

The parsed JSON takes about 3 GB of memory.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .renaming import renamed

Records = list[dict[str, Any]]
WHOLE = ("attribute", "category", "sensor", "visibility")
FOLDERS = {"jpeg": "images", "bin": "lidar"}
MAP = "map_raster_palo_alto.png"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    def load(name: str) -> Records:
        return raw.read_json(f"train_data/{name}.json")

    logs, scenes, samples, files = load("log"), load("scene"), load("sample"), load("sample_data")
    sensors, poses, annotations, instances = map(
        load, ("calibrated_sensor", "ego_pose", "sample_annotation", "instance")
    )
    boxes, [the_map] = raw.read_csv("train.csv"), load("map")
    train_logs, test_logs = hold_out(_column(logs, "token"), 0.2)
    out = Preparation()
    rows: dict[str, pd.DataFrame] = {}
    for part, own in (("train", train_logs), ("test", test_logs)):
        # A scene has the token of its log.
        own_samples = _where(samples, "scene_token", own)
        tokens = set(_column(own_samples, "token"))
        own_files = _where(files, "sample_token", tokens)
        # A pose that several files use is listed several times.
        own_poses = _column(own_files, "ego_pose_token")
        tables = {
            "log": _where(logs, "token", own),
            "scene": _where(scenes, "log_token", own),
            "sample": own_samples,
            "sample_data": own_files,
            "calibrated_sensor": _named(sensors, dict.fromkeys(_column(own_files, "calibrated_sensor_token"))),
            # v2 fixes repeated-poses
            "ego_pose": _named(poses, own_poses if edition == "v1" else dict.fromkeys(own_poses)),
            "map": [{**the_map, "log_tokens": test_logs if edition == "v1" else own}],  # v2 fixes map-lists-test-logs
        }
        if part == "train":
            tables["sample_annotation"] = _where(annotations, "sample_token", tokens)
            tables["instance"] = _where(instances, "token", _column(tables["sample_annotation"], "instance_token"))
        ids = boxes["Id"]
        files_of = {file["filename"]: file["filename"] for file in own_files}
        if edition == "v2" and part == "test":  # v2 fixes original-tokens
            tables, new_tokens, files_of = renamed(tables)
            ids = ids.map(new_tokens)
        for name, records in tables.items():
            out.public.json(f"{part}_data/{name}.json", records)
        out.public.copies((f"{part}_data/{name}.json", raw.file(f"train_data/{name}.json")) for name in WHOLE)
        out.public.copy(f"{part}_maps/{MAP}", raw.file(f"train_maps/{MAP}"))
        folders = {file["filename"]: FOLDERS[file["fileformat"]] for file in own_files}
        paths = {f"{folder}/{_last(name)}": f"{folder}/{_last(files_of[name])}" for name, folder in folders.items()}
        out.public.copies((f"{part}_{new}", raw.file(f"train_{old}")) for old, new in paths.items())
        rows[part] = boxes.assign(Id=ids)[boxes["Id"].isin(tokens)]
    if {len(boxes), len(samples)} != {sum(map(len, rows.values()))}:
        raise DownloadError("train.csv, sample.json and log.json do not match each other; download them again")
    if edition == "v2":  # in an order that says nothing (v2 fixes original-tokens)
        rows["test"] = rows["test"].sort_values("Id")
    out.public.table("train.csv", rows["train"])
    out.private.table("test.csv", rows["test"].assign(PredictionString=rows["test"]["PredictionString"].map(_certain)))
    out.public.table("sample_submission.csv", rows["test"].assign(PredictionString=""))
    return out


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _column(records: Records, field: str) -> list[str]:
    return [record[field] for record in records]


def _where(records: Records, field: str, tokens: Collection[str]) -> Records:
    wanted_tokens = set(tokens)
    return [record for record in records if record[field] in wanted_tokens]


def _named(records: Records, tokens: Iterable[str]) -> Records:
    by_token = {record["token"]: record for record in records}
    return [by_token[token] for token in tokens]


def _certain(boxes: str) -> str:
    """Insert a confidence of 1.0 before each box. The numbers are not reformatted."""
    tokens = boxes.split(" ")
    return " ".join(" ".join(["1.0", *tokens[start : start + 8]]) for start in range(0, len(tokens), 8))
