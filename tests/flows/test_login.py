"""Credentials for Kaggle are looked for once, and only for what has to be downloaded."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
import requests

from common.errors import UserError
from flows.preparing import Outlook, Preparing
from storage.sources.kaggle import credentials
from tests.kaggle_server import KaggleServer
from tests.stores import Store

IDS = ["digits", "leaf-classification", "spooky-author-identification"]


def test_a_login_that_cannot_be_renewed_offline_can_be_tried(
    kaggle: KaggleServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAGGLE_API_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))
    login = {
        "refresh_token": "r",
        "access_token": "expired",
        "access_token_expiration": "2020-01-01T00:00:00+00:00",
        "username": "me",
        "scopes": [],
    }
    (tmp_path / ".kaggle").mkdir()
    (tmp_path / ".kaggle" / "credentials.json").write_text(json.dumps(login))
    kaggle.close()
    with pytest.raises(requests.ConnectionError):
        credentials.find()
    outlook = Outlook.of(store, Preparing(IDS, store.root))
    assert outlook.refused == {}
    outlook.require_some(None)


@pytest.mark.parametrize("found", [None, UserError("kaggle.json is not JSON")])
def test_they_are_looked_for_once(store: Store, monkeypatch: pytest.MonkeyPatch, found: UserError | None) -> None:
    find = Mock(side_effect=[found])
    monkeypatch.setattr(credentials, "find", find)
    outlook = Outlook.of(store, Preparing(IDS, store.root))
    assert list(outlook.refused) == IDS[1:]
    (reason,) = outlook.reasons(None)
    assert reason == str(found) if found else "2 competitions would have to be downloaded from Kaggle" in reason
    find.assert_called_once()


def test_they_are_not_looked_for_if_nothing_is_missing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "find", find := Mock())
    assert Outlook.of(store, Preparing(IDS[:1], store.root)).refused == {}
    find.assert_not_called()
