# effect: write
import logging


def attempt(probe):
    logging.FileHandler(probe["write_file"]).close()
