"""A stand-in for `makespan.many.commands.answering`: a process that does what the question says, such as to die."""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        question = job["question"]
        match question["do"]:
            case "die":
                print("out of luck", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            case "die once":
                try:
                    Path(question["mark"]).mkdir()
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:
                    pass
            case "hang":
                time.sleep(600)
            case "refuse":
                print(json.dumps({"cause": "refused", "reason": "no such thing"}), flush=True)
                continue
        value = question.get("value", 7)
        document = {"status": "exact", "lower": value, "upper": value, "seconds": 0.0, "process": os.getpid()}
        bundle = "{}\n" if job["bundle"] else None
        print(json.dumps({"document": document, "digest": f"d{value}", "bundle": bundle}), flush=True)


if __name__ == "__main__":
    main()
