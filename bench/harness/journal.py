"""Results as they happen: one line of JSON for each workload and number of threads. A later run goes on from there."""

import json


class Journal:
    """The file of results, of which the last line for a key counts."""

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
        """Whether there is a result; one that failed is tried again."""
        found = self.results.get((suite, workload, threads))
        return found is not None and "failed" not in found

    def add(self, record):
        self.results[self.key(record)] = record
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")

    def records(self):
        """All results, in the order in which they were first measured."""
        return list(self.results.values())
