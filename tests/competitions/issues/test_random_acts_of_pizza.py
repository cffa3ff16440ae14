"""Probes of Random Acts of Pizza."""

from __future__ import annotations

import json
import zipfile

from tests.competitions.issues._probe import (
    World,
    remade,
)

GIVER = "giver_username_if_known"


def test_giver_reveals_outcome(v1: World, v2: World) -> None:
    """Whoever is thanked by name gave a pizza."""

    def named(content: bytes) -> bytes:
        requests = json.loads(content)
        known = [{**r, GIVER: "me" if r["requester_received_pizza"] else "N/A"} for r in requests]
        return json.dumps(known).encode()

    def right(world: World) -> float:
        requests = json.loads((world.public / "test.json").read_text())
        granted = {request["request_id"]: float(request.get(GIVER, "N/A") != "N/A") for request in requests}
        return world.grade(world.sample.assign(requester_received_pizza=world.sample["request_id"].map(granted)))

    worlds = remade(v1, {"train.json": named})
    assert right(worlds["v1"]) == 1.0
    assert right(worlds["v2"]) == 0.5


def test_duplicate_archives(v1: World, v2: World) -> None:
    """Both tables are public twice."""
    for name in ("train", "test"):
        with zipfile.ZipFile(v1.public / f"{name}.zip") as archive:
            assert archive.read(f"{name}.json") == (v1.public / f"{name}.json").read_bytes()
    assert not list(v2.public.glob("*.zip"))
