"""Kaggle, through its official SDK: archives, access checks, leaderboards, public notebooks and pages.

`kagglesdk` is the part of the `kaggle` distribution that calls the API. The other part, `kaggle.api.KaggleApi`, is
written for the command line: importing it accesses the network, creates folders in the home directory and prints; it
ignores KAGGLE_API_ENVIRONMENT; and its download has its own retries, prints its progress, and saves an error page as
data if a resumed request fails. The SDK makes the same calls with the same credentials and returns the streaming
response.

    credentials  finding them, and redacting them from all output
    errors       one-line messages that say what to do
    retry        which requests are retried, and after how long
    client       a connection with timeouts
    transfer     an archive as a stream that resumes after interruptions
    source       the download source: into a folder (partial files are resumed) or directly into an object store
    access       whether this account may download a competition, without downloading it
    leaderboard  teams and scores, stored as a table
    about        facts, files, pages and leaderboard, for a new competition
    kernels, notebook, pages
"""

from storage.sources.kaggle.access import Access, access
from storage.sources.kaggle.source import Kaggle

__all__ = ["Access", "Kaggle", "access"]
