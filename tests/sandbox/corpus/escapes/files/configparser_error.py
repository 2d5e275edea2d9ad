# effect: leak
# note: a parser's message quotes the file
import configparser


def attempt(probe):
    configparser.ConfigParser().read(probe["secret_file"])
