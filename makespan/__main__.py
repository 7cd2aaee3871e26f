"""`python -m makespan`."""

from makespan.cli import main

if __name__ == "__main__":
    main()
