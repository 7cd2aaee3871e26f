"""Two warps, exactly: a grid of their places, or from event to event."""
