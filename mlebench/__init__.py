"""The interface of the published benchmark's package, on this project's competitions, graders and stores.

Programs that import `mlebench.registry`, `mlebench.grade` or `mlebench.data` run on it unchanged.

registry        competitions by id, below a data directory or in a store
grade           reports of submissions, and their totals
grade_helpers   the classes of reports and graders, and `InvalidSubmissionError`
data            preparing datasets, and leaderboards
utils           helpers that programs import
metrics         metrics that folders of competitions import

`import mlebench` raises `ImportError` if the published package is installed as well.
"""

from mlebench_command import require_own_packages

require_own_packages()
