"""Incremental results: one JSON line per workload and number of threads. A later run resumes from them."""

import json


class Journal:
    """The results file; the last line for a key counts."""

    def __init__(self, path):
        self.path = path
        self.results = {}
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    record = json.loads(line)
                    self.results[self.key(record)] = record
                except (ValueError, KeyError):  # a line that was cut short by an interruption
                    continue

    @staticmethod
    def key(record):
        return record["suite"], record["workload"], record["threads"]

    def has(self, suite, workload, threads):
        """Whether there is a successful result; failures are repeated."""
        found = self.results.get((suite, workload, threads))
        return found is not None and "failed" not in found

    def add(self, record):
        self.results[self.key(record)] = record
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")

    def records(self):
        """All results, in the order of their first measurement."""
        return list(self.results.values())
