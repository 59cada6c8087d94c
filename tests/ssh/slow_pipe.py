#!/usr/bin/env python3
"""ProxyCommand of ssh: a connection of 20 ms and 1 MB/s in each direction, which the test cuts. slow_pipe.py PORT FOLDER

FOLDER/down: no connection is made while it is there. FOLDER/PID: of this process while it lives, with the bytes that came from the server and
when the connection was made."""

import os
import pathlib
import socket
import sys
import threading
import time

DELAY, RATE, PIECE = 0.020, 1_000_000, 4096


def carry(read, write, count):
    """Bytes leave DELAY after they came, PIECE by PIECE at RATE."""
    waiting, lock, came = [], threading.Lock(), threading.Semaphore(0)

    def deliver():
        free = 0.0
        while True:
            came.acquire()
            with lock:
                at, data = waiting.pop(0)
            if not data:
                os._exit(0)
            free = max(free, at + DELAY) + len(data) / RATE
            time.sleep(max(0.0, free - time.monotonic()))
            write(data)
            count(len(data))

    threading.Thread(target=deliver, daemon=True).start()
    room = threading.Semaphore(64)  # what a line holds; more waits at the sender
    while True:
        data = read(PIECE)
        with lock:
            waiting.append((time.monotonic(), data))
        came.release()
        if not data:
            time.sleep(60)
        room.acquire(timeout=len(data) / RATE if len(waiting) > 64 else 0)


def main():
    port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    if (folder / "down").exists():
        sys.exit("the network is down")
    server = socket.create_connection(("127.0.0.1", port), timeout=10)
    server.settimeout(None)
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    record, total, began = folder / str(os.getpid()), [0], time.time()

    def received(size):
        total[0] += size
        record.write_text(f"{total[0]} {began}")

    received(0)

    def write_all(data):
        while data:
            data = data[os.write(1, data) :]

    threading.Thread(target=carry, args=(lambda size: os.read(0, size), server.sendall, lambda size: None), daemon=True).start()
    carry(server.recv, write_all, received)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(str(error))
