# effect: exhaust
import ipaddress


def attempt(probe):
    return len(list(ipaddress.ip_network('::/0').subnets(new_prefix=128)))
