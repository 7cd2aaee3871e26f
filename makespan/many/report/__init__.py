"""Many worst cases, and worst cases beside runs of policies: the words and pictures of `makespan.many.study`."""
