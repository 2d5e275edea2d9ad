# effect: network
import smtplib


def attempt(probe):
    smtplib.SMTP(probe["host"], probe["tcp_port"], timeout=0.5)
