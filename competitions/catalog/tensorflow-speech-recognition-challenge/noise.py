"""Cutting recordings of noise into a part for training and clips of silence for the test set."""

import io
import wave

import numpy as np

_SHARE = 5  # one part in so many of each recording is held out
_SECONDS = 1


def cut(recordings: dict[str, bytes], count: int) -> tuple[dict[str, bytes], list[bytes]]:
    """The first four fifths of each WAV file, and about `count` clips of a second from the rest, evenly spaced.

    Clips of a recording overlap if it is short, but never with what is left of it for training.
    """
    train_recordings: dict[str, bytes] = {}
    clips: list[bytes] = []
    clips_per_recording = -(-count // max(len(recordings), 1))
    for name, data in recordings.items():
        with wave.open(io.BytesIO(data)) as file:
            settings, frames = file.getparams(), file.readframes(file.getnframes())
        width = settings.sampwidth * settings.nchannels
        total = len(frames) // width
        kept = total - max(total // _SHARE, 1)
        length = min(_SECONDS * settings.framerate, total - kept)
        train_recordings[name] = written(settings, frames[: kept * width])
        starts = np.linspace(kept, total - length, clips_per_recording).astype(int).tolist()
        clips += [written(settings, frames[start * width : (start + length) * width]) for start in starts]
    return train_recordings, clips[:count]


def written(settings: "wave._wave_params", frames: bytes) -> bytes:
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams(settings._replace(nframes=0))
        file.writeframes(frames)
    return content.getvalue()
