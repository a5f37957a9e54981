"""How long heavy requests keep the daemon's loop: bench_loop [--rounds N] [--npu-bytes S] [--free-blocks] [--check]
[part of a scenario's name ...].

Every scenario has a daemon of its own, and is run a few times, each on a device made anew. Told of the best round,
as another load on the machine only adds: the longest turn of the loop by the clock, the most processor time of one
turn, the longest that the loop slept within one turn, and the latency of a second client that asks all the while, 99.9 % and the worst, and its mean as a multiple of
what it is alone. What prepares a round and what takes the figures is not in them.

--npu-bytes: NPUs of that size, but where a scenario is about its own. --free-blocks: there are 100,000 free blocks
from the beginning; takes NPUs of 64 MiB. --check: ends with 1 where a scenario fails, or takes more than a
millisecond of processor time in one turn, or sleeps in one for more than five, or costs the second client more than it may.
"""

import argparse
import contextlib
import os
import resource
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]

from support import Daemon, HungUp, pb  # noqa: E402
from turns import tensors, placement, operations, kernels, snapshots, closing, walks  # noqa: E402, F401: their scenarios, in this order
from turns.bench import Bench, scenarios  # noqa: E402
from turns.ping import Pinger  # noqa: E402

MOST_CPU_NS, MOST_WAIT_NS = 1_000_000, 5_000_000
ENOUGH_SECONDS = 10  # after which a scenario is not run another time


def run_round(scenario, options, fragmented):
    with contextlib.ExitStack() as stack:
        if scenario.state:
            options += ("--state-dir", stack.enter_context(tempfile.TemporaryDirectory(prefix="npumem-bench-")))
        daemon = stack.enter_context(Daemon(*options))
        bench = Bench(daemon)
        with bench.stack:
            if fragmented:
                bench.fragment()
            steps = scenario.function(bench)
            next(steps)
            pinger = Pinger(daemon, scenario.ping)
            # Its own turn is not counted, however long it has to look at the device.
            bench.watcher.call(stat=pb.StatRequest(reset=True))
            next(steps, None)
            times, ratio = pinger.end()
            loop = bench.watcher.call(stat=pb.StatRequest(details=True)).stat.loop
            return loop.longest_ns, loop.longest_cpu_ns, times, ratio, loop.longest_wait_ns


def run(scenario, rounds, *device):
    """Prints a line. Whether all is as it must be."""
    results, end = [], time.monotonic() + ENOUGH_SECONDS
    while len(results) < rounds and (not results or time.monotonic() < end):
        results.append(run_round(scenario, *device))
    longest = min(result[0] for result in results)
    cpu = min(result[1] for result in results)
    wait = min(result[4] for result in results)
    answered = [result[2] for result in results if result[2]]
    assert answered, "no ping was answered"
    times = min(answered, key=lambda times: times[-1])
    ratio = min(result[3] for result in results)
    most = times[min(len(times) - 1, len(times) * 999 // 1000)]
    fine = cpu <= MOST_CPU_NS and wait <= MOST_WAIT_NS and not (scenario.most and ratio > scenario.most)
    print(
        f"{scenario.name:68} {longest / 1e6:9.3f} {cpu / 1e6:9.3f} {wait / 1e6:9.3f} {most / 1e6:9.3f} {times[-1] / 1e6:9.3f}"
        f" {ratio:8.1f} {len(times):7} {'' if fine else '!'}",
        flush=True,
    )
    return fine


def try_run(scenario, rounds, *device):
    try:
        return run(scenario, rounds, *device)
    except (AssertionError, HungUp, OSError) as problem:
        print(f"{scenario.name:68} failed: {str(problem)[:200]!r}", flush=True)
        return False


def main():
    parser = argparse.ArgumentParser(prog="bench_loop", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--npu-bytes", help="of all devices but those that a scenario is about")
    parser.add_argument("--free-blocks", action="store_true", help="100,000 from the beginning")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("words", nargs="*", help="parts of scenarios' names")
    given = parser.parse_args()
    if given.free_blocks and not given.npu_bytes:
        given.npu_bytes = str(64 << 20)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(
        f"{'milliseconds':68} {'turn':>9} {'of cpu':>9} {'asleep':>9} {'99.9 %':>9} {'worst':>9} {'x alone':>8} {'pings':>7}",
        flush=True,
    )
    fine = True
    for scenario in scenarios:
        if given.words and not any(word in scenario.name for word in given.words):
            continue
        options, fragmented = scenario.options, given.free_blocks and not scenario.sized
        if given.npu_bytes and not scenario.sized:
            options += ("--npu-bytes", given.npu_bytes)
        fine &= try_run(scenario, given.rounds, options, fragmented)
    if given.check and not fine:
        sys.exit(1)


main()
