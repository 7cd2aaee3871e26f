"""Questions over HTTP: a page that asks, the processes that answer, and the server between them."""

from makespan.many.serve.form import ServeLimits
from makespan.many.serve.jobs import ServeJobs
from makespan.many.serve.server import PageServer, is_loopback

__all__ = ["PageServer", "ServeJobs", "ServeLimits", "is_loopback"]
