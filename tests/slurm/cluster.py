"""A real Slurm of this test's own: munged, slurmctld and a slurmd for each of three nodes, all on loopback and in one folder. Nothing of the
system's own munge or Slurm is touched, nothing is installed."""

import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
NODES, CPUS = 3, 8


def missing():
    """Why no cluster can be started here; empty where one can."""
    lacking = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    if lacking:
        return f"{', '.join(lacking)} not found; Debian's packages slurm-wlm and munge have them"
    mounts = pathlib.Path("/proc/self/mounts").read_text().splitlines()
    return "" if any(line.split()[2].startswith("cgroup") for line in mounts) else "no cgroup file system is mounted, and slurmd does not start without"


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes, self.nodes = [], {}
        for name in ("ctl", "log", "munge"):
            (self.folder / name).mkdir(parents=True)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.environment = {"PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.configure()

    def configure(self):
        host, user, here = socket.gethostname().split(".")[0], getpass.getuser(), self.folder
        controller, *ports = free_ports(1 + NODES)
        lines = ["ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmUser={user}", f"SlurmdUser={user}", "AuthType=auth/munge",
                 f"AuthInfo=socket={here}/munge/socket,cred_expire=5", "CredType=cred/munge", f"StateSaveLocation={here}/ctl",
                 f"SlurmdSpoolDir={here}/spool-%n", f"SlurmctldLogFile={here}/log/slurmctld", f"SlurmdLogFile={here}/log/%n",
                 f"SlurmctldPidFile={here}/slurmctld.pid", f"SlurmdPidFile={here}/%n.pid", f"SlurmctldPort={controller}",
                 "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "JobAcctGatherType=jobacct_gather/none",
                 "AccountingStorageType=accounting_storage/none", "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core",
                 "SlurmdParameters=config_overrides", "ReturnToService=2", "MpiDefault=none", "KillWait=5", "GresTypes=gpu",
                 "SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0", "RebootProgram=/bin/false"]
        nodes = [f"NodeName=n{i + 1} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} Gres=gpu:{CPUS} State=UNKNOWN"
                 for i, port in enumerate(ports)]
        partition = "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
        (here / "slurm.conf").write_text("\n".join([*lines, *nodes, partition]) + "\n")
        for gpu in range(CPUS):  # Slurm wants a file for each
            (here / f"gpu{gpu}").touch()
        (here / "gres.conf").write_text(f"Name=gpu File={here}/gpu[0-{CPUS - 1}]\n")

    def start(self):
        munge = self.folder / "munge"
        self.spawn("munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                   f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--num-threads=2")
        self.until(lambda: (munge / "socket").exists(), "munged does not start", 30)
        self.spawn("slurmctld", "-D", "-c", "-i")
        self.until(lambda: "is UP" in self.ask("scontrol", "ping", check=False), "slurmctld does not start", 60)
        for node in range(NODES):
            self.start_node(node)
        self.until(lambda: self.ask("sinfo", "--noheader", "--format=%D", "--states=idle", check=False).strip() == str(NODES),
                   "the nodes do not come up", 60)

    def spawn(self, *command):
        with open(self.folder / "log" / f"{command[0]}-{len(self.processes)}", "a") as log:
            self.processes.append(subprocess.Popen(command, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL, stdout=log,
                                                   stderr=log, start_new_session=True))

    def start_node(self, node):
        self.spawn("slurmd", "-D", "-N", f"n{node + 1}")
        self.nodes[node] = self.processes[-1]

    def kill_node(self, node):
        """Its slurmd, with SIGKILL; what it has started goes on. It is down until start_node."""
        slurmd = self.nodes.pop(node)
        slurmd.kill()
        slurmd.wait()
        self.processes.remove(slurmd)

    def until(self, done, story, seconds):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end or any(process.poll() is not None for process in self.processes):
                raise SystemExit(f"{story}: " + self.logs())
            time.sleep(0.1)

    def logs(self):
        return "\n".join(f"-- {file.name}\n" + file.read_text(errors="replace")[-800:] for file in sorted((self.folder / "log").iterdir()))

    def ask(self, *command, check=True, timeout=60):
        result = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=timeout)
        if check and result.returncode != 0:
            raise SystemExit(f"{command}: {result.stderr}")
        return result.stdout

    def jobs(self):
        """(id as "4711_3", its own job number, state, name) of all that slurmctld knows."""
        lines = self.ask("squeue", "--noheader", "--array", "--states=all", "--format=%i|%A|%T|%j").splitlines()
        return [tuple(line.split("|")) for line in lines]

    def care(self):
        """What the staff of a site does when Slurm itself is at a loss, since it waits for them without end: starts a slurmd that has ended by
        itself, resumes a node that was drained after a failure ("batch job complete failure", "Duplicate jobid"), releases a job that was put
        back too often. Returns what it did, in words."""
        done = []
        for node, slurmd in self.nodes.items():
            if slurmd.poll() is not None:
                self.processes.remove(slurmd)
                self.start_node(node)
                done.append(f"slurmd of n{node + 1} started again (exit code {slurmd.returncode})")
        for line in self.ask("sinfo", "--Node", "--noheader", "--format=%N|%T|%E", check=False).splitlines():
            name, state, reason = line.split("|", 2)
            if "drain" in state:
                self.ask("scontrol", "update", f"NodeName={name}", "State=RESUME", check=False)
                done.append(f"{name} resumed ({state}: {reason})")
        for line in self.ask("squeue", "--array", "--noheader", "--states=all", "--format=%i|%T|%r", check=False).splitlines():
            job, state, reason = line.split("|", 2)
            if "held" in reason.lower() or "hold" in reason.lower() or state in ("REQUEUE_HOLD", "SPECIAL_EXIT"):
                self.ask("scontrol", "release", job, check=False)
                done.append(f"job {job} released ({state}: {reason})")
        return done

    def state(self):
        """What a person would look at: jobs with the reason why they wait, nodes with the reason why they are down, and the daemons' last words."""
        asked = (("squeue", "--array", "--states=all", "--format=%i %T %r %N %M"), ("sinfo", "--Node", "--format=%N %T %E"))
        return "\n".join([*(self.ask(*command, check=False) for command in asked), self.logs()])

    def end(self):
        """Jobs first, then the daemons that this started."""
        try:
            subprocess.run(["scancel", "--user", getpass.getuser()], env={**os.environ, **self.environment}, capture_output=True, timeout=20)
            time.sleep(1)
        except subprocess.TimeoutExpired:
            pass
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
