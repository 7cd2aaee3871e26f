"""Equal strings and one issue slot, exactly: cycle by cycle all ways in which the warps can be late."""
