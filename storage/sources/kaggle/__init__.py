"""Kaggle through its official client: archives, access to them, leaderboards, public notebooks and pages.

The client is `kagglesdk`, the part of the `kaggle` distribution that calls the API. The other part,
`kaggle.api.KaggleApi`, is made for the command line: importing it accesses the network, creates folders in the home
directory and prints; it always uses the production server, whatever KAGGLE_API_ENVIRONMENT says; and its download
retries on its own, prints its progress, and stores an error page as data when a resumed request fails. The SDK makes
the same calls with the same credentials and returns the streaming response, which is all we need.

    credentials  looking them up, and redacting them from messages
    errors       exceptions
    retry        retries with backoff
    client       connections with timeouts
    transfer     a download as a stream that resumes
    source       the download source, into a folder or directly into an object store
    access       whether this account may download a competition
    leaderboard  teams and scores, as a table
    kernels      public notebooks
    pages        descriptions
"""

from storage.sources.kaggle.access import Access, access
from storage.sources.kaggle.source import Kaggle

__all__ = ["Access", "Kaggle", "access"]
