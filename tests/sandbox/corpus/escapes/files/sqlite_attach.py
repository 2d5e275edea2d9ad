# effect: write
# note: a database in memory that attaches a file
import sqlite3


def attempt(probe):
    base = sqlite3.connect(":memory:")
    base.execute("attach ? as other", (probe["write_file"],))
    base.execute("create table other.a (b)")
