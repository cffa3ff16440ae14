"""A small server that speaks Kaggle's API over real HTTP, with the parity miniatures as its content."""

from tests.kaggle_server.server import Fault, KaggleServer

__all__ = ["Fault", "KaggleServer"]
