# effect: write
import sqlite3


def attempt(probe):
    sqlite3.connect(probe["write_file"]).execute("create table a (b)")
