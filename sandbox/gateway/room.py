"""Bound what the requests of a run take at a time, and a minute."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class NoRoom(Exception):
    """What is under way takes all the memory."""


class Room:
    """Memory that is given out before it is used. Belongs to one event loop."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, size: int, seconds: float) -> AsyncIterator[Share]:
        """Hold `size` bytes during the block; waits up to `seconds` for them. Raises `NoRoom`."""
        share = Share(self)
        try:
            try:
                async with asyncio.timeout(seconds), self._changed:
                    await self._changed.wait_for(lambda: share.grow(size, check=False))
            except TimeoutError:
                raise NoRoom from None
            yield share
        finally:
            self._free += share.size
            share.size = 0
            async with self._changed:
                self._changed.notify_all()

    def take(self, size: int) -> bool:
        """Take bytes if they are free."""
        if size > self._free:
            return False
        self._free -= size
        return True


class Share:
    """The memory that one request holds."""

    def __init__(self, room: Room) -> None:
        self.size = 0
        self._room = room

    def grow(self, size: int, *, check: bool = True) -> bool:
        """Hold `size` more bytes. If they are not free, return False, or with `check` raise `NoRoom`."""
        if not self._room.take(size):
            if check:
                raise NoRoom
            return False
        self.size += size
        return True


class Rate:
    """An allowance a minute, which can be saved up for one minute. What is used may exceed it, and is then awaited."""

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = per_minute
        self._left, self._at = float(per_minute or 0), time.monotonic()

    def wait(self) -> int:
        """Seconds until something is left; 0 if something is."""
        if self._per_minute is None:
            return 0
        now = time.monotonic()
        self._left = min(self._left + (now - self._at) * self._per_minute / 60, float(self._per_minute))
        self._at = now
        return 0 if self._left >= 1 else math.ceil((1 - self._left) * 60 / self._per_minute)

    def use(self, amount: int) -> None:
        """Use a part; a negative amount gives it back."""
        self._left -= amount
