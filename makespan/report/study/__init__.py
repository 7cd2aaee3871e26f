"""Many worst cases, and worst cases beside runs of policies: what `makespan.study` computes, in words and pictures."""
