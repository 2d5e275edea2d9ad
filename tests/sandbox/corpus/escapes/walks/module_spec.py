# effect: leak
import csv


def attempt(probe):
    return csv.__spec__.loader.get_data(probe["secret_file"])
