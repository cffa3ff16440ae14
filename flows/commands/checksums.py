"""`mlebench prepare --overwrite-checksums`: the checksums in competition.yaml become those of the prepared files."""

from __future__ import annotations

import os
from collections.abc import Iterable

import click
import yaml

from common.errors import UsageError, UserError
from common.texts import read_text
from common.units import counted
from competitions import registry
from competitions.checksums import with_checksums
from competitions.editions import Choice, Edition
from competitions.facts import Checksums
from storage.dataset import Dataset
from storage.datasets.current import find
from storage.datasets.verify import md5s_of_tables
from storage.sources.acquire import recorded_md5
from storage.store import Store

_EDITION: Edition = "v1"  # the edition whose checksums are in competition.yaml


def require_overwritable(ids: Iterable[str], edition: Choice) -> None:
    """Raise `UserError`, before hours of work, unless this is edition v1 and every competition.yaml can be written."""
    if edition != _EDITION:
        raise UsageError(f"the checksums in competition.yaml are those of edition {_EDITION}; leave out --edition")
    for competition in map(registry.get, ids):
        path = competition.folder / "competition.yaml"
        if competition.published_format:
            raise UserError(
                f"{competition.id} is in the published format: --overwrite-checksums writes competition.yaml, which it "
                "does not have; write its checksums.yaml"
            )
        if not os.access(path, os.W_OK):
            raise UserError(f"--overwrite-checksums: {path} cannot be written")


def overwrite(ids: Iterable[str], store: Store) -> int:
    """Write the checksums of the prepared competitions; returns the exit code, 1 if one is not prepared."""
    code = 0
    for competition in map(registry.get, ids):
        dataset = find(store, Dataset(_EDITION, competition.id))
        if dataset is None:
            code = 1  # the reason has been printed already
            continue
        path = competition.folder / "competition.yaml"
        text = read_text(path)
        before = Checksums.model_validate(yaml.safe_load(text).get("checksums") or {})
        after = md5s_of_tables(store, dataset, before.prepared)
        download = recorded_md5(store, competition.id) or before.download
        changed = sum(after.get(path) != before.prepared.get(path) for path in {*after, *before.prepared})
        changed += download != before.download
        if changed:
            path.write_text(with_checksums(text, download, after), "utf-8")
        registry.reread()
        click.echo(f"{competition.id}: {counted(changed, 'checksum')} changed in {path}")
    return code
