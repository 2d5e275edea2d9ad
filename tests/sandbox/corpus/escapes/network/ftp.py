# effect: network
import ftplib


def attempt(probe):
    ftplib.FTP().connect(probe["host"], probe["tcp_port"], timeout=0.5)
