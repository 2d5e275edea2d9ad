# effect: escaped
# note: types into a terminal (TIOCSTI); needs: root or the old setting
import fcntl
import os
import termios


def attempt(probe):
    _, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ICANON
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
    return "escaped" if os.read(terminal, 1) == b"x" else "none"
