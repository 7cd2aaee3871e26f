"""Questions over HTTP: a page that asks, the processes that answer, and the server between them."""

from makespan.many.serve.jobs import Jobs, Limits
from makespan.many.serve.server import Server, is_loopback

__all__ = ["Jobs", "Limits", "Server", "is_loopback"]
