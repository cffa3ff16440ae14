"""Kaggle, by its official client: archives, who may have them, leaderboards, public notebooks and pages.

The client is `kagglesdk`, the half of the `kaggle` distribution that speaks to the API. The other half,
`kaggle.api.KaggleApi`, is a command line turned library: importing it asks the network, makes folders in the home
directory and prints; it always talks to production whatever KAGGLE_API_ENVIRONMENT says; and its download waits and
retries on its own, prints what it does, and stores an error page as data when a resumed request fails. The SDK below
it makes the same calls with the same credentials and hands over the streaming response, which is all that is needed.

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
