"""A result in words and as data, and the bundle with its evidence that `makespan.verify` checks."""
