"""Many questions, and a table of their answers that outlives whoever computes it.

`spec` is a file of questions, `store` the table, `workshop` answers questions in processes that may die, `cluster` does
so elsewhere, `running` brings them together, and `rows` is what the table says. A question is a table of options; who
answers it is a module that a process runs, `python -m MODULE`, so that nothing here knows what is asked.
"""
