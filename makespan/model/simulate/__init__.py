"""The machine as the definition states it, replay of schedules, and scheduling policies."""

from makespan.model.simulate.choices import Choices
from makespan.model.simulate.policies import POLICIES
from makespan.model.simulate.replay import replay
from makespan.model.simulate.runs import run, shortest_run

__all__ = ["POLICIES", "Choices", "replay", "run", "shortest_run"]
