"""The values of the model and its semantics: machines, programs, instances, schedules, results, GPUs."""
