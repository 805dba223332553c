"""Real-time tasks on multicore machines, with any processor affinities: analysed and simulated exactly.

>>> import shiftwork as sw
>>> rover = sw.TaskSet(
...     cpus=2,
...     tasks=[
...         sw.Task("control", cost="2ms", period="10ms", affinity="0"),
...         sw.Task("vision", cost="25ms", period="40ms"),
...         sw.Task("logging", cost="10ms", period="50ms"),
...     ],
... )
>>> sw.analyze(rover).verdict("hpa-edf").verdict
'schedulable'
>>> run = sw.simulate(rover, "hpa-edf")
>>> run.jobs, run.deadline_misses
(1450, 0)

Durations are texts with a unit (``"5ms"``), ``timedelta``, or whole nanoseconds under a keyword that ends in
``_ns``; results are integers under names that end in ``_ns``. Whatever computes lets other threads go on.
"""

from . import agent, cluster, plot
from ._shiftwork import VERSION as __version__
from ._progress import Progress
from ._spans import Duration
from .analysis import Analysis, Verdict, analyze
from .catalogue import Policy, policies
from .errors import (
    AgentError,
    ClusterError,
    InputError,
    MissingExtraError,
    NoAgentError,
    PolicyError,
    RefusedError,
    ShiftworkError,
    StudyError,
    StudyWarning,
)
from .generation import generate
from .overheads import Overheads
from .simulation import Simulation, simulate
from .study import Study, StudyResults
from .tables import Table
from .taskset import Task, TaskSet, load, loads

__all__ = [
    "AgentError",
    "Analysis",
    "ClusterError",
    "Duration",
    "InputError",
    "MissingExtraError",
    "NoAgentError",
    "Overheads",
    "Policy",
    "PolicyError",
    "Progress",
    "RefusedError",
    "ShiftworkError",
    "Simulation",
    "Study",
    "StudyError",
    "StudyResults",
    "StudyWarning",
    "Table",
    "Task",
    "TaskSet",
    "Verdict",
    "__version__",
    "agent",
    "analyze",
    "cluster",
    "generate",
    "load",
    "loads",
    "plot",
    "policies",
    "simulate",
]
