"""Published models of kernel time: what is likely, beside what is proven.

An `Estimate` is a type of its own. It has no order, is no number and is no `Bounds`: nothing that asks for a proven
upper bound accepts it.
"""

from makespan.estimates.estimate import Estimate, ModelQuantity, Origin, Term

__all__ = ["Estimate", "ModelQuantity", "Origin", "Term"]
