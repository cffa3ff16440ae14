"""Find the new messages in each request of a run: requests repeat the conversation that they continue."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sandbox.trajectory.messages import Message


class Threads:
    """The conversations of a run, of which an agent may have several: one for each attempt, or with sub-agents."""

    def __init__(self) -> None:
        self._beginnings: set[bytes] = set()
        """Digests of all beginnings of requests, over the messages that are not the model's."""
        self._ends: set[bytes] = set()
        """Digests of whole requests, over the same messages."""
        self._seen: set[bytes] = set()
        """Digests of single messages, also of the model's."""

    def fresh(self, asked: Sequence[Message]) -> list[Message]:
        """The messages of a request that no earlier one contained, without the model's own answers.

        A request that continues an earlier one may repeat a text: all that follows is new. In one that continues none,
        because the agent has dropped or shortened old messages, those that were seen anywhere are not new.
        """
        digest, known_count = b"", 0
        for number, message in enumerate(asked):
            if message.role == "assistant":
                continue
            following = _joined(digest, message)
            if following not in self._beginnings:
                break
            digest, known_count = following, number + 1
        continues = digest in self._ends
        rest = asked[known_count:]
        new_messages = []
        for message in rest:
            content_digest = message.said().digest
            if (message.role != "assistant" and continues) or content_digest not in self._seen:
                new_messages.append(message)
        for message in rest:
            self._seen.add(message.said().digest)
            if message.role != "assistant":
                digest = _joined(digest, message)
                self._beginnings.add(digest)
        self._ends.add(digest)
        return new_messages

    def answered(self, answer: Message) -> None:
        """Note an answer, so that it is not new in the requests that follow."""
        self._seen.add(answer.said().digest)


def _joined(digest: bytes, message: Message) -> bytes:
    return hashlib.blake2b(digest + message.digest, digest_size=16).digest()
