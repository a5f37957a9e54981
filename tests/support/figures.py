#!/usr/bin/python3
"""Draws the figures of the documents into a folder (client/man/figures), with npumemctl alone for all of the layout chapter's.

    tests/support/figures.py build client/man/figures

A figure that the chapter names with X NPUs is drawn for X = 4, its own "to illustrate simply".
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import overview  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../examples/networks")
FOUR = "--npus 4 --npu-bytes 1024"
ROOMY = "--npus 4 --npu-bytes 4096"
MATRIX = f"plan {ROOMY} --layout matrix --rows 2 --cols 40 --dtype fp32 --w"

# name: the command that draws it
FIGURES = {
    "address": f"plan {FOUR} --address 340,1472,2300,3088",
    "scatter_0": f"plan {FOUR} --shape 2,3,1,1 --dtype fp32 --start-npu 0 --by feature",
    "scatter_1": f"plan {FOUR} --shape 2,3,1,1 --dtype fp32 --start-npu 1 --by feature",
    "scatter_2": f"plan {ROOMY} --shape 2,6,1,1 --dtype fp32 --start-npu 0 --by feature",
    "scatter_3": f"plan {ROOMY} --shape 2,6,1,1 --dtype fp32 --start-npu 3 --by feature",
    "stride_local_0": f"plan {ROOMY} --shape 2,5,3,4 --dtype fp32 --layout strided --stride 120,56,16,2 --start-npu 0",
    "stride_local_1": f"plan {ROOMY} --shape 2,3,1,10 --dtype fp32 --layout strided --stride 120,0,0,2 --start-npu 1",
    "align_fp32_start_0_2_3_4_5": f"plan {FOUR} --shape 2,3,4,5 --dtype fp32 --start-npu 0",
    "align_fp32_start_2_2_3_4_5": f"plan {FOUR} --shape 2,3,4,5 --dtype fp32 --start-npu 2",
    "compact_fp32_start_0_2_3_4_5": f"plan {FOUR} --shape 2,3,4,5 --dtype fp32 --layout compact --start-npu 0",
    "compact_fp32_start_2_2_3_4_5": f"plan {FOUR} --shape 2,3,4,5 --dtype fp32 --layout compact --start-npu 2",
    **{f"matrix_w_{w}": f"{MATRIX} {w}" for w in (40, 20, 10, 8, 15, 6)},
    "aligned_4N": f"plan {FOUR} --shape 6,5,4,5 --dtype int8 --mode 4n",
    "network": f"plan {os.path.join(EXAMPLES, 'digits_fx8.json')}",
    "aligned_2N": f"plan {FOUR} --shape 3,5,4,5 --dtype int16 --mode 2n",
}

# The safety rule on a device. b fills empty blocks of a, which if-safe allows: no kernel may write either. lost was put into
# empty blocks of out unchecked; the kernel that wrote out destroyed it.
RULE_DEVICE = "--npus 4 --npu-bytes 2048 --allow-unchecked-reuse"
RULE = """
alloc out --shape 1,6,1,128 --dtype fx8 --frac-bits 4
alloc lost --shape 1,2,1,128 --dtype int8 --address 4224 --reuse unchecked
alloc in --shape 1,6,1,128 --dtype fx8 --frac-bits 4
alloc a --shape 1,5,1,128 --dtype int8 --dma-only
alloc b --shape 1,3,1,128 --dtype int8 --address 2688 --reuse if-safe --dma-only
alloc weights --shape 1,4,1,64 --dtype int8
alloc new --shape 1,3,1,100 --dtype int8
fill in 1
fill lost 1
fill a 1
fill b 1
fill weights 1
seal weights
run relu in=in out=out
map --svg "$FIGURE"
"""


def draw_rule(build, path):
    """On a daemon of its own."""
    npumemctl = os.path.join(build, "client/ctl/npumemctl")
    script = "set -e\n" + "".join(f'"$NPUMEMCTL" {line}\n' for line in RULE.split("\n") if line)
    subprocess.run([npumemctl, f"--spawn={RULE_DEVICE}", "exec", "sh", "-c", script], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, NPUMEMCTL=npumemctl, FIGURE=path, NPUMEMD=os.path.join(build, "daemon/npumemd")))


def ctl(build, words):
    subprocess.run([os.path.join(build, "client/ctl/npumemctl"), *words.split()], check=True, stdout=subprocess.DEVNULL)


def main(build, folder):
    os.makedirs(folder, exist_ok=True)
    for name, command in FIGURES.items():
        ctl(build, f"{command} --svg {os.path.join(folder, name + '.svg')}")
    overview.draw(os.path.join(folder, "overview.svg"))
    draw_rule(build, os.path.join(folder, "rule.svg"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
