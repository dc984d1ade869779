#!/usr/bin/env python3
"""Times of torch's conversions on one thread, beside those of `cargo bench -p safestep --bench numbers`.

Needs torch 2.x. Runs the benchmark for its 64 MiB section, then torch on as many values; prints how many times as fast
ours is. The benchmark's binary may be given as the only argument.

Both count the time of their own thread on the processor, and show medians of calls into memory that was written before.
"""

import json
import subprocess
import sys
import tempfile
import time

import torch

VALUES = 16 << 20
ROUNDS = 41
DTYPES = {
    "BF16": "bfloat16",
    "F16": "float16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}


def ours() -> dict[str, float]:
    command = sys.argv[1:2] or ["cargo", "bench", "-q", "-p", "safestep", "--bench", "numbers", "--"]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        # The section in memory alone: its rows are named "decode" and "encode".
        subprocess.run([*command, "--only", "code", "--json", file.name], check=True, stdout=subprocess.DEVNULL)
        times = json.load(file)["times"]
    # "BF16 decode, half" is the row of BF16's decoding.
    return {row["name"].split(",")[0]: row["ours_ns"] for row in times if row["section"] == "peers"}


def median_ns(target: torch.Tensor, source: torch.Tensor) -> float:
    samples = []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        target.copy_(source)
        samples.append(time.thread_time_ns() - begin)
    return sorted(samples)[ROUNDS // 2]


def main() -> None:
    torch.set_num_threads(1)
    times = ours()
    values = torch.randn(VALUES).abs()
    print(f"torch {torch.__version__}, 64 MiB of f32 values, one thread")
    print(f"{'format, way':24}{'ours':>10}{'torch':>10}{'times':>8}")
    for dtype, name in DTYPES.items():
        if not hasattr(torch, name):
            continue
        codes = values.to(getattr(torch, name))
        decoded = torch.zeros(VALUES)
        for way, arguments in {"decode": (decoded, codes), "encode": (codes, values)}.items():
            mine, theirs = times[f"{dtype} {way}"], median_ns(*arguments)
            verdict = "" if theirs >= mine else "  BELOW"
            print(f"{dtype + ' ' + way:24}{mine / 1e6:7.2f} ms{theirs / 1e6:7.2f} ms{theirs / mine:8.2f}{verdict}")


if __name__ == "__main__":
    main()
