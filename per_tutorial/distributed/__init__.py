"""Training on many machines with Ray: studies whose stacks are trained on a cluster, and Ape-X.

```python
from per_tutorial.distributed import RayStacks, connected

with connected("local"):
    run_study(study, "results", executor=RayStacks())
```

`cluster.py` connects to a cluster and checks its nodes, and `studies.py` trains the stacks of a
study. In Ape-X, `acting.py` and `memory.py` are what actors and memory shards do,
`n_step_batches.py` is what they exchange, `processes.py` runs them as processes, and `apex.py` is
the learner, with its settings and files in `apex_settings.py` and `apex_files.py`.
`more_actors.py` asks whether more actors learn better. Ray comes with the extra `ray`.
"""

from typing import TYPE_CHECKING

from per_tutorial.common.lazy import lazy_names

if TYPE_CHECKING:
    from per_tutorial.distributed.apex import ApexHistory as ApexHistory
    from per_tutorial.distributed.apex import train_apex as train_apex
    from per_tutorial.distributed.apex_settings import ApexConfig as ApexConfig
    from per_tutorial.distributed.cluster import ClusterError as ClusterError
    from per_tutorial.distributed.cluster import connected as connected
    from per_tutorial.distributed.studies import RayStacks as RayStacks

_HOMES = {
    "apex": ("ApexHistory", "train_apex"),
    "apex_settings": ("ApexConfig",),
    "cluster": ("ClusterError", "connected"),
    "studies": ("RayStacks",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
