# effect: network
# note: the shell's own sockets
import subprocess


def attempt(probe):
    target = f"/dev/tcp/{probe['host']}/{probe['tcp_port']}"
    subprocess.run(["bash", "-c", f"echo x > {target}"], check=True)
