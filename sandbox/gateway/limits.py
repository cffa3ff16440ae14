"""Limits of the gateway: the memory of all requests that are under way, and requests and tokens a minute."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class MemoryLimitReached(Exception):
    """The requests that are under way take all the memory."""


class MemoryLimit:
    """Memory that requests reserve before they use it. Belongs to one event loop."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def reserve(self, size: int, seconds: float) -> AsyncIterator[ReservedMemory]:
        """Reserve `size` bytes for the block; waits up to `seconds` for them. Raises `MemoryLimitReached`."""
        reserved = ReservedMemory(self)
        try:
            try:
                async with asyncio.timeout(seconds), self._changed:
                    await self._changed.wait_for(lambda: reserved.grow(size, check=False))
            except TimeoutError:
                raise MemoryLimitReached from None
            yield reserved
        finally:
            self._free += reserved.size
            reserved.size = 0
            async with self._changed:
                self._changed.notify_all()

    def take(self, size: int) -> bool:
        """Take bytes if they are free."""
        if size > self._free:
            return False
        self._free -= size
        return True


class ReservedMemory:
    """The memory that one request has reserved."""

    def __init__(self, limit: MemoryLimit) -> None:
        self.size = 0
        self._limit = limit

    def grow(self, size: int, *, check: bool = True) -> bool:
        """Reserve `size` more bytes. If they are not free, return False, or with `check` raise `MemoryLimitReached`."""
        if not self._limit.take(size):
            if check:
                raise MemoryLimitReached
            return False
        self.size += size
        return True


class Rate:
    """A limit per minute. An unused amount is saved, up to that of one minute; using more delays the next request."""

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = per_minute
        self._available, self._refilled_at = float(per_minute or 0), time.monotonic()

    def wait(self) -> int:
        """Seconds until something is available; 0 if something is."""
        if self._per_minute is None:
            return 0
        now = time.monotonic()
        self._available = min(
            self._available + (now - self._refilled_at) * self._per_minute / 60, float(self._per_minute)
        )
        self._refilled_at = now
        return 0 if self._available >= 1 else math.ceil((1 - self._available) * 60 / self._per_minute)

    def use(self, amount: int) -> None:
        """Use a part; a negative amount gives it back."""
        self._available -= amount
