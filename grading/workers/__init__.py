"""Grade in worker processes, so that no submission can abort the grading of others or delay it beyond its limits.

`pool` starts `server`, a process that keeps the answers in memory and forks `worker` processes. A worker reads and
scores submissions (`scoring`) within `limits`; `endings` maps every way to end to an outcome. `cache` keeps graders
open between calls. `scorer` scores files against a truth that comes with them (`own_truth`), without any answers.
"""

from grading.workers.cache import GraderCache
from grading.workers.limits import GradingLimits
from grading.workers.pool import GradingPool
from grading.workers.scorer import Scorer

__all__ = ["GraderCache", "GradingLimits", "GradingPool", "Scorer"]
