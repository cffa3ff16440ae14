"""The scans of a table of masks: which slices belong together, and the voxels of their organs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.items import distinct
from competitions.scoring.metrics.rle_columns import RleMasks
from competitions.scoring.metrics.volumes import Voxels

BATCH = 100_000  # pixels, so that what is computed stays in the processor's cache


@dataclass(frozen=True)
class Scans:
    """The scans of a table in order of the ids. Rows are numbers of masks, by scan and by slice."""

    masks: RleMasks
    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]
    """width and height of the mask of each row of the table"""
    rows: NDArray[np.int64]
    slices: NDArray[np.int64]
    """the number of the slice that each of `rows` belongs to, within its scan"""
    bounds: NDArray[np.intp]
    """where the rows of each scan begin, and the end"""
    shapes: NDArray[np.int64]
    """slices, height and width of each scan"""

    @classmethod
    def of(cls, ids: list[str], masks: RleMasks, sizes: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Scans:
        """The scans with these ids of slices. Raises `InvalidSubmission` if the slices of a scan differ in size."""
        column = pa.array(ids, pa.string())
        order = pc.sort_indices(column).to_numpy().astype(np.int64)
        names = pc.list_element(pc.split_pattern(column.take(pa.array(order)), "_slice_", max_splits=1), 0)
        scan, scans = distinct(names)
        by_scan = np.argsort(scan, kind="stable")  # "a!" lies between "a" and "a_slice_1"
        rows, scan = order[by_scan], scan[by_scan]
        bounds = np.searchsorted(scan, np.arange(len(scans) + 1))
        first = bounds[scan]
        width, height = (side[rows] for side in sizes)
        wrong = (width != width[first]) | (height != height[first])
        if wrong.any():
            raise InvalidSubmission(
                f"`id`: the slices of {scans[scan[np.argmax(wrong)]][:40]} differ in size; "
                "keep the rows of test.csv in order."
            )
        code = column.dictionary_encode().indices.to_numpy()[rows]
        number = np.cumsum((code != np.roll(code, 1)) | (np.arange(len(rows)) == first)) - 1
        slices = number - number[first]
        starts, ends = bounds[:-1], bounds[1:] - 1
        shapes = np.stack([slices[ends] + 1, height[starts], width[starts]], axis=1)
        return cls(masks, sizes, rows, slices, bounds, shapes)

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """The number of the first run of each row of the table, and the end."""
        return np.searchsorted(self.masks.rows, np.arange(self.masks.size + 1))

    @cached_property
    def pixels_of_rows(self) -> NDArray[np.int64]:
        """The number of pixels in the mask of each of `rows`."""
        covered = np.append(0, np.cumsum(self.masks.stops - self.masks.starts))
        return covered[self.runs[self.rows + 1]] - covered[self.runs[self.rows]]

    @cached_property
    def pixels(self) -> NDArray[np.int64]:
        """The number of pixels in the masks of all scans before each, and of all."""
        return np.append(0, np.cumsum(self.pixels_of_rows))[self.bounds]

    def voxels(self, scans: slice, edition: Edition) -> Voxels:
        """The voxels of all organs of these scans."""
        part = slice(self.bounds[scans.start], self.bounds[scans.stop])
        rows = self.rows[part]
        counts = self.runs[rows + 1] - self.runs[rows]
        runs = np.arange(counts.sum()) + np.repeat(self.runs[rows] - np.cumsum(counts) + counts, counts)
        starts, lengths = self.masks.starts[runs], self.masks.stops[runs] - self.masks.starts[runs]
        pixels = np.arange(lengths.sum()) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        of_rows = self.pixels_of_rows[part]
        # As published, v1 goes down the columns, which is not how masks are numbered; v2 fixes pixel-order.
        width, height = self.sizes
        size = height[rows] if edition == "v1" else width[rows]
        # To divide by one number takes a fraction of the time, and scans have one size.
        divisor = size[:1] if (size == size[:1]).all() else np.repeat(size, of_rows)
        outer = pixels // divisor
        inner = pixels - outer * divisor
        scan = np.repeat(np.arange(scans.stop - scans.start), np.diff(self.bounds[scans.start : scans.stop + 1]))
        volume, number = (np.repeat(values, of_rows) for values in (scan, self.slices[part]))
        return Voxels(volume, number, inner, outer) if edition == "v1" else Voxels(volume, number, outer, inner)


def batches(true: Scans, found: Scans) -> Iterator[slice]:
    """Yield the scans of both in order, so many that their masks have some 100,000 pixels, but at least one."""
    count = min(len(true.shapes), len(found.shapes))
    pixels = true.pixels[: count + 1] + found.pixels[: count + 1]
    start = 0
    while start < count:
        stop = max(start + 1, int(np.searchsorted(pixels, pixels[start] + BATCH, side="right")) - 1)
        yield slice(start, stop)
        start = stop
