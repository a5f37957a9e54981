"""What a farm costs: a device that idles and one that is full (memory, descriptors, threads, processor), and jobs a second
with and without a device, on a cluster of four nodes on this machine. As root; NPUMEM_BUILD names the build folder.
usage: bench_farm.py [--devices N] [--jobs N]: figures for npumem-farm(7), which says how they extrapolate.
"""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time

import slurm as clusters

NPUMEMD = os.path.join(clusters.BUILD, "daemon/npumemd")
CTL = os.path.join(clusters.BUILD, "client/ctl/npumemctl")
CHIPS = {"bm1684x": (64, 256 << 10), "sg2260": (64, 256 << 10), "64 x 16 MiB": (64, 16 << 20)}
OPTIONS = {"64 x 16 MiB": ("--npus", "64", "--npu-bytes", "16M")}


class Device:
    def __init__(self, chip, folder, name):
        self.socket = os.path.join(folder, name)
        self.process = subprocess.Popen([NPUMEMD, *OPTIONS.get(chip, ("--chip", chip)), "--log", "error", "--socket", self.socket])
        self.ctl("--reconnect", "30", "info")

    def ctl(self, *words):
        subprocess.run([CTL, "--socket", self.socket, *words], check=True, stdout=subprocess.DEVNULL)

    def memory(self):
        """MiB that are its own, MiB that are mapped."""
        fields = {}
        for name in ("smaps_rollup", "status"):
            with open(f"/proc/{self.process.pid}/{name}", encoding="ascii") as file:
                fields.update(line.split(":", 1) for line in file if ":" in line)
        kib = {name: int(value.split()[0]) for name, value in fields.items() if value.strip().endswith("kB")}
        return (kib["Private_Clean"] + kib["Private_Dirty"] + kib.get("Shared_Dirty", 0)) / 1024, kib["VmSize"] / 1024

    def count(self, what):
        return len(os.listdir(f"/proc/{self.process.pid}/{what}"))

    def processor(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def fill(self, n_npus, n_bytes):
        self.ctl("alloc", "all", "--shape", f"1,{n_npus},1,{n_bytes}", "--dtype", "int8")
        self.ctl("fill", "all", "1")

    def end(self):
        self.process.terminate()
        self.process.wait()


def devices(n):
    print(f"{'a device':14} {'idle MiB':>9} {'mapped':>9} {'full MiB':>9} {'its bytes':>9} {'descriptors':>12} {'threads':>8} {'s/hour':>7}")
    for chip, (n_npus, n_bytes) in CHIPS.items():
        with tempfile.TemporaryDirectory(prefix="npumem-bench-") as folder:
            all_of = [Device(chip, folder, str(i)) for i in range(n)]
            idle = statistics.median(one.memory()[0] for one in all_of)
            mapped = all_of[0].memory()[1]
            before = sum(one.processor() for one in all_of)
            time.sleep(10)
            seconds = (sum(one.processor() for one in all_of) - before) / n * 360
            counts = all_of[0].count("fd"), all_of[0].count("task")
            all_of[0].fill(n_npus, n_bytes)
            full = all_of[0].memory()[0]
            for one in all_of:
                one.end()
        print(f"{chip:14} {idle:9.1f} {mapped:9.1f} {full:9.1f} {n_npus * n_bytes / 2**20:9.1f} {counts[0]:12} {counts[1]:8} {seconds:7.2f}")


def processor():
    """Of all children that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def jobs(n):
    with clusters.Slurm(devices=1) as slurm:
        kinds = {"without": (), "with": ("--gres=npu:1",)}
        alone = {kind: [] for kind in kinds}
        for _ in range(11):
            for kind, options in kinds.items():
                begin = time.monotonic()
                slurm.call("srun", "-w", "n1", *options, "true")
                slurm.wait(lambda: not slurm.jobs("%A"))
                alone[kind].append(time.monotonic() - begin)
        print(f"\n{'jobs of `true`':24} {'one, s':>8} {'a second':>9}")
        for kind, options in kinds.items():
            begin = time.monotonic()
            slurm.call("sbatch", "--wait", f"--array=1-{n}", "-c", "4", *options, "-o", "/dev/null", "--wrap", "true", seconds=60 + n)
            rate = n / (time.monotonic() - begin)
            print(f"{kind + ' a device':24} {statistics.median(alone[kind]):8.3f} {rate:9.1f}")
        node = slurm.nodes["n1"]
        script = slurm.path("npumem/libexec/npumem/slurm")
        job = slurm.call("sbatch", "--parsable", "--gres=npu:1", "-w", "n1", "-o", "/dev/null", "--wrap", "sleep 600").strip()
        slurm.wait(lambda: node.pids("sleep") and slurm.devices_left())
        spent, begin = processor(), time.monotonic()
        for _ in range(20):
            for name in ("epilog", "prolog"):
                subprocess.run(node.inside("env", f"SLURM_CONF={slurm.path('slurm.conf')}", f"SLURM_JOB_ID={job}", "SLURM_JOB_UID=0",
                                           "SLURMD_NODENAME=n1", f"{script}/{name}"), check=True)  # fmt: skip
        print(f"{'prolog and epilog alone':24} {(time.monotonic() - begin) / 20:8.3f}           {(processor() - spent) / 20:.3f} s of processor")
        slurm.empty()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=100)
    arguments = parser.parse_args()
    why = clusters.cannot_run()
    devices(arguments.devices)
    if why:
        raise SystemExit(f"{why}: jobs were not measured")
    jobs(arguments.jobs)


if __name__ == "__main__":
    main()
