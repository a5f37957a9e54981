"""What the trace-event format asks of a file, and what Perfetto's importer does to one that breaks it: times become whole
nanoseconds by cutting off, slices that overlap in part are dropped, an arrow binds to the slice that is open at its time."""

import collections
import json
import math

PHASES = "XMbesfiC"


def nanoseconds(microseconds):
    return int(microseconds * 1000.0)


def is_number(value, least=0):
    return type(value) in (int, float) and math.isfinite(value) and value >= least


def is_id(value):
    return type(value) is int and 0 <= value < 2**32


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def event_faults(event):
    """Of one event by itself."""
    phase = event.get("ph")
    if phase not in list(PHASES):
        return [f"phase {phase}"]
    wanted = {"name": lambda value: type(value) is str and value, "pid": is_id}
    if phase != "M":
        wanted |= {"ts": is_number, "cat": lambda value: type(value) is str and value}
    if phase in "Xsf" or event.get("name") == "thread_name":
        wanted["tid"] = is_id
    if phase in "besf":
        wanted["id"] = lambda value: type(value) is int and 0 <= value < 2**53
    counts = lambda value: type(value) is dict and value and all(map(is_number, value.values()))  # noqa: E731
    wanted |= {"X": {"dur": is_number}, "C": {"args": counts}, "i": {"s": lambda value: value in ("g", "p", "t")},
               "f": {"bp": lambda value: value == "e"},
               "M": {"name": lambda value: value in ("process_name", "thread_name"),
                     "args": lambda value: type(value) is dict and type(value.get("name")) is str and value["name"]}}.get(phase, {})
    faults = [name for name, is_good in wanted.items() if not is_good(event.get(name))]
    return faults + (["args"] if type(event.get("args", {})) is not dict else [])


def slice_faults(slices):
    """Of one track, in the order of the file: nested or apart."""
    open_ends = []
    for event in sorted(slices, key=lambda event: nanoseconds(event["ts"])):
        start = nanoseconds(event["ts"])
        end = start + nanoseconds(event["dur"])
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            yield f"slices overlap at {event['ts']}"
        else:
            open_ends.append(end)


def pair_faults(events):
    """Of begins and ends with one key: in turns."""
    kinds = [event["ph"] for event in sorted(events, key=lambda event: nanoseconds(event["ts"]))]
    if kinds != ["b", "e"] * (len(kinds) // 2):
        yield f"begins and ends of {events[0]['name']}: {''.join(kinds)}"


def flow_faults(events, tracks):
    """Of an arrow: it begins and ends in a slice each, forwards."""
    order = sorted(events, key=lambda event: nanoseconds(event["ts"]))
    if [event["ph"] for event in order] != ["s", "f"]:
        yield f"an arrow of {[event['ph'] for event in order]}"
    for event in order:
        at = nanoseconds(event["ts"])
        starts = [(nanoseconds(one["ts"]), nanoseconds(one["dur"])) for one in tracks[event["pid"], event["tid"]]]
        if not any(start <= at and (at < start + dur or at == start) for start, dur in starts):
            yield f"an arrow's {event['ph']} at {event['ts']} is in no slice"


def name_faults(events):
    named = collections.Counter((event["name"], event["pid"], event.get("tid")) for event in events if event["ph"] == "M")
    yield from (f"{name} twice" for name, n in named.items() if n > 1)
    for event in events:
        if ("process_name", event["pid"], None) not in named:
            yield f"process {event['pid']} without a name"
        if "tid" in event and ("thread_name", event["pid"], event["tid"]) not in named:
            yield f"thread {event['tid']} without a name"


def faults(text):
    """All that is wrong with a trace, as sentences."""
    trace = json.loads(text, parse_constant=no_constant)
    if trace.get("displayTimeUnit") not in ("ms", "ns") or type(trace.get("traceEvents")) is not list:
        return ["no trace"]
    events = trace["traceEvents"]
    found = [f"{event}: {fault}" for event in events for fault in event_faults(event)]
    if found:
        return found
    tracks, pairs, flows = (collections.defaultdict(list) for _ in range(3))
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
        elif event["ph"] in "be":
            pairs[event["cat"], event["id"], event["name"], event["pid"]].append(event)
        elif event["ph"] in "sf":
            flows[event["cat"], event["id"], event["name"]].append(event)
    for slices in tracks.values():
        found += slice_faults(slices)
    for pair in pairs.values():
        found += pair_faults(pair)
    for flow in flows.values():
        found += flow_faults(flow, tracks)
    return found + list(name_faults(events))
