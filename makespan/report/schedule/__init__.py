"""A schedule for whoever reads it: what happens when and why, in words, letters, pictures, tables and traces."""
