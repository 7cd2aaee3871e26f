"""The commands of `makespan measure` that measure the parameters of a model, or write the programs that do."""
