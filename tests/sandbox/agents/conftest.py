from __future__ import annotations

collect_ignore = ["stand_in"]  # packages of agents, which other processes import
