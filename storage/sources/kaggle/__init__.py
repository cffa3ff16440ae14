"""Kaggle through its official client: archives, access to them, leaderboards, public notebooks and pages.

The client is `kagglesdk`, the part of the `kaggle` distribution that calls the API. The other part,
`kaggle.api.KaggleApi`, is made for the command line: importing it accesses the network, creates folders in the home
directory and prints; it always uses the production server, whatever KAGGLE_API_ENVIRONMENT says; and its download
retries on its own, prints its progress, and stores an error page as data when a resumed request fails. The SDK makes
the same calls with the same credentials and returns the streaming response, which is all we need.

    credentials  where they are looked for, and keeping them out of everything that is shown
    errors       what went wrong, in one line that says what to do
    retry        what is tried again, and after how long
    client       a connection with timeouts
    transfer     an archive as a stream that goes on after a cut
    source       the download source: into a folder (partial files survive) or straight into an object store
    access       may this account download it? without downloading
    leaderboard  teams and scores, kept as a table
    kernels, notebook, pages
"""

from storage.sources.kaggle.access import Access, access
from storage.sources.kaggle.source import Kaggle

__all__ = ["Access", "Kaggle", "access"]
