"""Reports on the deadlines of a task set: as text, as data, as a picture and as a page."""
