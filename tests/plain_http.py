"""Requests to servers without TLS, which need no certificates: to read them takes longer than to ask our services."""

from __future__ import annotations

from functools import partial

import httpx

get = partial(httpx.get, verify=False)
post = partial(httpx.post, verify=False)
