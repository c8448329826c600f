#!/usr/bin/env python3
"""Runs a command on a machine that seems to run programs for aarch64 too: enter.py ROOT QEMU COMMAND…

The kernel hands such programs to qemu-user (binfmt_misc), whichever program starts them. The programs of ROOT are in the place
of the machine's own ones of the same name: the shell, Python and what else ROOT has. They find the libraries of ROOT beside those
of the machine, as with Debian's packages of a second architecture. All of that is in namespaces of the command's own
(binfmt_misc: Linux 6.7; overlayfs: 5.11). So nothing on the machine changes, and no privilege is needed.
"""
import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE = 16384, 1 << 18
# binfmt-misc.rst: the begin of an ELF file of 64 bits for aarch64, its mask, the interpreter. F: it is opened now. O: it gets
# the open file. P: it gets the program's own name. C: a set-user-id program has the rights of its file.
AARCH64 = rb":aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00" \
    rb":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:%s:CFOP"
libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result:
        sys.exit(f"enter.py: {what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, options=None):
    checked(libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, options and options.encode()),
            f"mounting {target}")


def give_identity(pid):
    """Root stays root with all users. Any other user is root inside, alone."""
    user, group = os.getuid(), os.getgid()
    if user:
        with open(f"/proc/{pid}/setgroups", "w", encoding="ascii") as file:
            file.write("deny")
    for name, own in (("uid_map", user), ("gid_map", group)):
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
            file.write("0 0 4294967295" if user == 0 else f"0 {own} 1")


def enter(root, qemu):
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("none", "/proc/sys/fs/binfmt_misc", "binfmt_misc", 0)
    with open("/proc/sys/fs/binfmt_misc/register", "wb", 0) as register:
        register.write(AARCH64 % qemu.encode())
    for folder in "lib", "bin":
        mount("overlay", f"/usr/{folder}", "overlay", 0, f"lowerdir={root}/usr/{folder}:{root}/{folder}:/usr/{folder}")


def main():
    root, qemu, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    ready, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(mapped[1])
        checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "a user namespace")
        os.write(ready[1], b"1")
        if not os.read(mapped[0], 1):
            os._exit(1)  # the parent has failed, and said why
        enter(root, qemu)
        os.execvp(command[0], command)
    os.close(ready[1])
    if os.read(ready[0], 1):
        give_identity(child)
        os.write(mapped[1], b"1")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


main()
