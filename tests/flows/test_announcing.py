"""What a host announces names the event that the server must have handled before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from prefect.events import Event
from prefect.events.clients import AssertingEventsClient
from prefect.events.worker import EventsWorker
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.fleet.notifications import HOST_ALIVE, HOST_STOPPED, Message, announce_host


@pytest.fixture(autouse=True)
def _server_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EventsWorker, "_client_override", (AssertingEventsClient, ()))


def announced(last: Event | None) -> Event:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        event = announce_host("anna", HOST_STOPPED, last)
    assert event
    return event


def alive(age: timedelta) -> Event:
    resource = {"prefect.resource.id": "mlebench.host.anna"}
    return Event.model_validate({"event": HOST_ALIVE, "resource": resource, "occurred": datetime.now(UTC) - age})


def test_a_farewell_follows_a_sign_of_life_just_before_it() -> None:
    last = alive(timedelta(seconds=1))
    assert announced(last).follows == last.id


def test_a_farewell_does_not_wait_for_one_that_a_restarted_server_does_not_know() -> None:
    assert announced(alive(timedelta(seconds=50))).follows is None
    assert announced(None).follows is None


def test_foreign_words_have_no_markup_in_whichever_program_shows_them() -> None:
    message = Message("\u202efailed", "![x](//foreign.example/a) <img src=a> <!channel> https://b. Report:", "s3://c/d")
    body = "![x] (/ /foreign.example/a) ‹img src=a› ‹!channel› https:/ /b. Report: s3://c/d"
    assert message.payload() == {"subject": "\ufffdfailed", "body": body}
