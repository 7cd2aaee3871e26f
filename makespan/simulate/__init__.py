"""The machine as the definition states it, replay of schedules, and scheduling policies."""

from makespan.simulate.policies import POLICIES, run
from makespan.simulate.replay import replay

__all__ = ["POLICIES", "replay", "run"]
