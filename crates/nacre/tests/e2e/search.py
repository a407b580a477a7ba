"""Looks for secrets in everything that a process in here can see, and prints where each was found.

Names and secrets, the latter in hex, come on standard input, which nobody else sees; the argument is when
the first of them was made. Every file is read to its end, but for those of the base system in /usr that did
not change since: their ctime, which the kernel keeps and nobody can set, says that nothing was written to
them after there was anything to write.
"""

import os
import stat
import sys

BEGAN = float(sys.argv[1])
SECRETS = [(name, bytes.fromhex(word)) for name, word in map(str.split, sys.stdin)]
LONGEST = max(len(secret) for _, secret in SECRETS)
PIECE = 1 << 20
counts = {"looked": 0, "older": 0, "memory": 0}


def search(place, pieces):
    found, end = set(), b""
    for piece in pieces:
        piece = end + piece
        found.update(name for name, secret in SECRETS if secret in piece)
        end = piece[-LONGEST:]
    for name in sorted(found):
        print("found", name, place)


def pieces_of(path):
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            yield piece


def look(path):
    try:
        search(path, pieces_of(path))
    except OSError:
        return
    counts["looked"] += 1


def look_at_files():
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "dev")]
        base = f"{folder}/".startswith("/usr/")
        for name in folders + files:
            search(f"the name of {folder}", [os.fsencode(name)])
        for name in files:
            path = os.path.join(folder, name)
            try:
                there = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISLNK(there.st_mode):
                search(path, [os.fsencode(os.readlink(path))])
            elif stat.S_ISREG(there.st_mode):
                if base and there.st_ctime < BEGAN:
                    counts["older"] += 1
                else:
                    look(path)


def memory_of(process):
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            first, last = (int(place, 16) for place in span.split("-"))
            while "r" in rights and first < last:
                try:
                    memory.seek(first)
                    piece = memory.read(min(PIECE, last - first))
                except (OSError, ValueError, OverflowError):
                    break
                if not piece:
                    break
                first += len(piece)
                yield piece


def look_at_processes():
    for process in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline", "mountinfo", "status", "net/unix"):
            look(f"/proc/{process}/{name}")
        if int(process) == os.getpid():
            continue
        try:
            search(f"the memory of {process}", memory_of(process))
            counts["memory"] += 1
        except OSError:
            pass


look_at_files()
look_at_processes()
for what, count in counts.items():
    print(what, count)
