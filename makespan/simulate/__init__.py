"""The machine as the definition states it, replay of schedules, and scheduling policies."""

from makespan.simulate.choices import Choices
from makespan.simulate.policies import POLICIES
from makespan.simulate.replay import replay
from makespan.simulate.runner import run, shortest

__all__ = ["POLICIES", "Choices", "replay", "run", "shortest"]
