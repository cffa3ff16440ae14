"""Imports of Dask workers, for the fork server of a local cluster, from which workers start quickly."""

from __future__ import annotations

from storage.datasets.workers import prepare_process

prepare_process()
