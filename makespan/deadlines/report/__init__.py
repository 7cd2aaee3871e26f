"""Whether the deadlines of a task set hold: in words, as data and as a picture."""
