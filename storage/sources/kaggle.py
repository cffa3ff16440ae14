"""Downloads by Kaggle's official client."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from competitions.competition import Competition
from competitions.errors import DownloadError

CREDENTIALS = (
    "Kaggle credentials are missing or not valid; provide them in one of three ways: the environment variable "
    "KAGGLE_API_TOKEN, the variables KAGGLE_USERNAME and KAGGLE_KEY, or the file ~/.kaggle/kaggle.json "
    "(kaggle.com -> Settings -> API)"
)


class Kaggle:
    """Downloads a competition's archive."""

    name = "kaggle"

    def version(self, competition: Competition) -> str | None:
        """Not known without asking; the archive's MD5 in competition.yaml is the judge."""
        return None

    def fetch(self, competition: Competition, folder: Path) -> Path:
        """Download into `folder`. Raises `DownloadError` for credentials, rules not accepted and cut downloads."""
        api = _client()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                api.competition_download_files(competition.id, path=str(folder), quiet=True)
        except Exception as error:  # the client's errors come from three libraries
            raise _explained(competition.id, error) from error
        path = folder / f"{competition.id}.zip"
        if not path.is_file():
            raise DownloadError(f"{competition.id}: Kaggle sent no archive; try again")
        return path


def _client() -> Any:
    # The package looks for credentials when it is imported, prints to the terminal and ends the process without them.
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            from kaggle.api.kaggle_api_extended import KaggleApi

            api = KaggleApi()
            api.authenticate()
    except (SystemExit, OSError, ValueError, ImportError) as error:
        raise DownloadError(CREDENTIALS) from error
    return api


def _explained(competition_id: str, error: Exception) -> Exception:
    status = getattr(getattr(error, "response", None), "status_code", None)
    page = f"https://www.kaggle.com/competitions/{competition_id}"
    if status == 401:
        return DownloadError(CREDENTIALS)
    if status == 403:
        return DownloadError(f"{competition_id}: the rules are not accepted yet; accept them at {page}/rules")
    if status == 404:
        return DownloadError(f"{competition_id}: Kaggle knows no such competition, see {page}")
    return ConnectionError(f"{competition_id}: download failed: {type(error).__name__}: {error}")
