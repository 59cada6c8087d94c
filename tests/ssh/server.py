"""An sshd of this test's own on a loopback port, with keys of its own, all in one folder; the home of whoever logs in is a folder there, too.
Nothing of the system's ssh is read or touched, but for /run/sshd, which sshd wants to be there when root starts it."""

import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
PRIVILEGES = pathlib.Path("/run/sshd")


def missing():
    return [name for name in ("sshd", "ssh", "ssh-keygen") if not shutil.which(name, path=PATH)]


def processes(*words, below):
    """Ids of processes whose command line has all these words in it, and whose environment names the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ") if entry.name.isdigit() else ""
            line = line if line and f"={below}/".encode() in (entry / "environ").read_bytes() else ""
        except OSError:
            continue
        if line and int(entry.name) != os.getpid() and all(word in line for word in words):
            found.append(int(entry.name))
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


class Server:
    """`home`: of whoever logs in, with data, cache and runs folders in it; `environment`: what is set there, too."""

    def __init__(self, folder, program, environment=None):
        self.folder, self.home, self.more = folder, folder / "home", environment or {}
        for name in ("home/bin", "pipe", "user"):
            (folder / name).mkdir(parents=True)
        (self.home / "bin" / "saccade").symlink_to(program)
        for key in ("host_key", "user/key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.write_config()
        self.made_folder = os.geteuid() == 0 and not PRIVILEGES.exists()
        if self.made_folder:
            PRIVILEGES.mkdir(mode=0o755)
        self.process = subprocess.Popen([shutil.which("sshd", path=PATH), "-D", "-e", "-f", folder / "sshd_config"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=open(folder / "sshd.log", "w"), start_new_session=True)
        self.wait()

    def folders(self):
        return {f"SACCADE_{name.upper()}": str(self.home / name) for name in ("data", "cache", "runs", "config")}

    def write_config(self):
        here, enter = self.folder, self.folder / "enter"
        shutil.copyfile(here / "user" / "key.pub", here / "authorized")
        variables = "\n".join(f"export {name}='{value}'" for name, value in (self.folders() | self.more).items())
        enter.write_text(f"#!/bin/sh\nexport HOME='{self.home}' PATH='{self.home / 'bin'}:{PATH}'\nunset XDG_RUNTIME_DIR\n{variables}\n"
                         'cd "$HOME"\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n')
        enter.chmod(0o755)
        (here / "sshd_config").write_text(f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {here}/host_key\nPidFile none\nUsePAM no\n"
                                          f"AuthorizedKeysFile {here}/authorized\nStrictModes no\nPasswordAuthentication no\n"
                                          f"KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\nForceCommand {enter}\n"
                                          "LogLevel ERROR\n")
        key = (here / "host_key.pub").read_text().split()
        (here / "user" / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key[0]} {key[1]}\nserver {key[0]} {key[1]}\n")
        common = (f"  User {getpass.getuser()}\n  HostName 127.0.0.1\n  Port {self.port}\n  HostKeyAlias server\n  IdentityFile {here}/user/key\n"
                  f"  IdentitiesOnly yes\n  UserKnownHostsFile {here}/user/known_hosts\n  BatchMode yes\n")
        pipe = f"  ProxyCommand {sys.executable} {HERE}/slow_pipe.py {self.port} {here}/pipe\n"
        (here / "user" / "config").write_text(f"Host near\n{common}  ProxyCommand none\nHost *\n{common}{pipe}")
        ssh = here / "user" / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec ssh -F "{here}/user/config" "$@"\n')
        ssh.chmod(0o755)

    def wait(self):
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
        raise SystemExit("sshd does not start: " + (self.folder / "sshd.log").read_text())

    def down(self, is_down=True):
        """The network; what is connected is cut."""
        (self.folder / "pipe" / "down").touch() if is_down else (self.folder / "pipe" / "down").unlink(missing_ok=True)
        return self.cut() if is_down else 0

    def cut(self):
        return sum(kill(pid) for pid in processes("slow_pipe.py", below=self.folder.parent))

    def connections(self):
        """(bytes from the server, when it was made) of the connections that there were."""
        records = []
        for record in (self.folder / "pipe").iterdir():
            words = record.read_text().split() if record.name.isdigit() else []
            if len(words) == 2:
                records.append((int(words[0]), float(words[1])))
        return records

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        for pid in processes(below=self.folder.parent):
            kill(pid)
        if self.made_folder:
            PRIVILEGES.rmdir()
