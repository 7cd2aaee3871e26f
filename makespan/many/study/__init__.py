"""Questions that take several answers: worst cases over a range, and a worst case beside runs of policies."""
