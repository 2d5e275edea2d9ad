# effect: state
# note: the table of dialects
import csv


def attempt(probe):
    csv.register_dialect("polluted", delimiter="|")


def check(probe):
    return "escaped" if "polluted" in csv.list_dialects() else "clean"
