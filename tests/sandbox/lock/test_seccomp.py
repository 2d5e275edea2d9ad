"""The filter, interpreted for every call of both architectures, and Landlock's."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from sandbox.lock import lockdown as landlock
from sandbox.lock.seccomp import (
    AUDIT_ARCH,
    SYSCALLS,
    Instruction,
    SeccompError,
    Verdict,
    build,
)

KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
REFUSE, NO_EXEC = ERRNO | errno.EACCES, ERRNO | errno.EPERM

MACHINES = ("x86_64", "aarch64")

# Where the C library's headers are, for those who have them.
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


# SANDBOX.md, Seccomp filter, in its own words.
ALLOWED = _words("""
    read write sendto recvfrom close brk munmap mremap madvise futex rt_sigreturn
    rt_sigprocmask sigaltstack clock_gettime gettimeofday getrandom restart_syscall
    sched_yield getpid rseq exit exit_group
""")
GUARDED = {"mmap", "mprotect"}
REFUSED = re.compile(
    r"open(at2?)?|\w*stat(x|fs|at)?|f?access(at2?)?|faccessat2?|readlink(at)?|getcwd|"
    r"getdents64|ioctl|fcntl|lseek|uname|sysinfo|get\w*id|nanosleep|clock_nanosleep|"
    r"times|getrusage|sched_getaffinity|prlimit64|p?poll|rt_sigaction"
)

# A choice of the rest: each is a way out, or was one.
DEADLY = _words("""
    execve execveat clone clone3 fork vfork socket socketpair connect bind listen accept
    sendmsg recvmsg kill tkill tgkill ptrace process_vm_readv process_vm_writev bpf
    io_uring_setup userfaultfd memfd_create prctl seccomp pkey_mprotect shmat mount
    unshare setns pidfd_open pidfd_getfd perf_event_open init_module keyctl setuid
    unlink unlinkat rename symlink dup dup2 pipe2 timer_create open_by_handle_at
    name_to_handle_at modify_ldt arch_prctl personality
""")


def run(program: list[Instruction], *, arch: int, number: int, third: int = 0) -> int:
    """Return what the program answers: an interpreter of the few codes it uses."""
    data = struct.pack("<iIQ6Q", _signed(number), arch, 0, 1, 2, third, 4, 5, 6)
    accumulator, at = 0, 0
    while True:
        code, jump_true, jump_false, constant = program[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, constant)
            case 0x15 | 0x35 | 0x45:
                holds = {
                    0x15: accumulator == constant,
                    0x35: accumulator >= constant,
                    0x45: accumulator & constant != 0,
                }[code]
                at += jump_true if holds else jump_false
            case 0x06:
                return constant
            case _:
                raise AssertionError(f"unknown code {code:#x}")


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def _expected(machine: str, number: int, third: int) -> int:
    for verdict, on_x86, on_arm in SYSCALLS.values():
        if number == (on_x86 if machine == "x86_64" else on_arm):
            if verdict is Verdict.NO_EXEC:
                return NO_EXEC if third & 4 else ALLOW
            return {Verdict.ALLOW: ALLOW, Verdict.REFUSE: REFUSE}[verdict]
    return KILL


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("third", [0, 1, 2, 3, 4, 5, 6, 7, 1 << 32, (1 << 64) - 1])
def test_every_number_has_the_verdict_of_the_table(machine: str, third: int) -> None:
    program = build(machine)
    arch = AUDIT_ARCH[machine]
    for number in (*range(601), *range(0x3FFFFF00, 0x40000000)):
        answer = run(program, arch=arch, number=number, third=third)
        assert answer == _expected(machine, number, third), number


@pytest.mark.parametrize("machine", MACHINES)
def test_x32_negative_numbers_and_other_architectures_are_killed(machine: str) -> None:
    program = build(machine)
    for base in (0x40000000, 0x80000000, 0xC0000000, 0xFFFFFDA0):
        for number in range(600):
            arch = AUDIT_ARCH[machine]
            assert run(program, arch=arch, number=base + number) == KILL
    others = [0x40000003, 0x40000028, 0xC00000F3, 0, 0xFFFFFFFF]
    others += [arch for name, arch in AUDIT_ARCH.items() if name != machine]
    for arch in others:
        for number in range(601):
            assert run(program, arch=arch, number=number) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_the_kernel_would_take_the_program(machine: str) -> None:
    program = build(machine)
    assert len(program) <= 4096
    for at, (code, jump_true, jump_false, constant) in enumerate(program):
        assert 0 <= constant < 1 << 32
        assert 0 <= jump_true < 256
        assert 0 <= jump_false < 256
        if code in {0x15, 0x35, 0x45}:
            assert at + 1 + max(jump_true, jump_false) < len(program)
    assert program[-1][0] == 0x06


def test_the_table_is_what_the_design_says_and_nothing_more() -> None:
    for name, (verdict, _, _) in SYSCALLS.items():
        if name in ALLOWED:
            assert verdict is Verdict.ALLOW
        elif name in GUARDED:
            assert verdict is Verdict.NO_EXEC
        else:
            assert REFUSED.fullmatch(name), name
            assert verdict is Verdict.REFUSE
    assert SYSCALLS.keys() >= ALLOWED | GUARDED
    assert not SYSCALLS.keys() & DEADLY


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip(f"no {HEADERS[machine]} here")
    defined = re.findall(
        r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text()
    )
    known = {name: int(number) for name, number in defined}
    if machine == "aarch64":
        # The generic header gives the name of 32-bit systems.
        known["newfstatat"] = known["fstatat"]
    for name, (_, *columns) in SYSCALLS.items():
        assert columns[MACHINES.index(machine)] == known.get(name), name
    program = build(machine)
    for name in sorted(DEADLY):
        if name in known:
            arch = AUDIT_ARCH[machine]
            assert run(program, arch=arch, number=known[name]) == KILL, name


@pytest.mark.parametrize("machine", ["riscv64", "i686", "armv7l", "", "x86"])
def test_an_unknown_architecture_has_no_filter_and_says_so(machine: str) -> None:
    with pytest.raises(SeccompError, match="no table"):
        build(machine)


@pytest.mark.parametrize(
    ("abi", "fields"),
    [
        (1, (0x1FFF,)),
        (2, (0x3FFF,)),
        (3, (0x7FFF,)),
        (4, (0x7FFF, 3)),
        (5, (0xFFFF, 3)),
        (6, (0xFFFF, 3, 3)),
        (7, (0xFFFF, 3, 3)),
        (99, (0xFFFF, 3, 3)),
    ],
)
def test_landlock_asks_for_all_that_a_version_can_refuse(
    abi: int, fields: tuple[int, ...]
) -> None:
    assert landlock.attributes(abi) == struct.pack(f"<{len(fields)}Q", *fields)
