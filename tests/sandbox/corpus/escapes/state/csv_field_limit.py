# effect: state
import csv


def attempt(probe):
    csv.field_size_limit(7)


def check(probe):
    return "escaped" if csv.field_size_limit() == 7 else "clean"
