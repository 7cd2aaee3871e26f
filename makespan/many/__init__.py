"""Many questions at once: studies, sweeps, libraries of instances, gates, and the page that answers."""
