"""The commands that ask many questions."""
