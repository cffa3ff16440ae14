"""Silence of the speech competition: cut from what the training data do not have of a recording."""

from __future__ import annotations

import io
import wave

import numpy as np

from competitions import registry

RATE, SECONDS = 16_000, 50


def test_clips_of_silence_are_not_in_the_training_part() -> None:
    cut = registry.get("tensorflow-speech-recognition-challenge").module("noise").cut
    samples = np.arange(RATE * SECONDS, dtype=np.int32).astype(np.int16)  # not the same within a recording of 4 s
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    shown, clips = cut({"tap.wav": content.getvalue(), "dishes.wav": content.getvalue()}, 25)
    assert len(clips) == 25
    assert {len(frames(clip)) for clip in clips} == {RATE}
    assert np.array_equal(frames(shown["tap.wav"]), samples[: RATE * 40])
    starts = {int(np.flatnonzero(samples[RATE * 40 :] == frames(clip)[0])[0]) for clip in clips}
    assert len(starts) == 13, "of each recording, evenly spaced"
    for clip in clips:
        start = RATE * 40 + int(np.flatnonzero(samples[RATE * 40 :] == frames(clip)[0])[0])
        assert np.array_equal(frames(clip), samples[start : start + RATE])


def frames(data: bytes) -> np.ndarray:
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (RATE, 2, 1)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)
