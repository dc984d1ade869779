"""What numpy takes for a batch: the usual get_batch, and astype of one slice of the same size. Nanoseconds, the medians.

Usage: numpy_batches.py SHARD B T
"""

import sys
import time

import numpy as np

path, batch, seq_len = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = np.memmap(path, dtype=np.uint16, mode="r", offset=1024)


def get_batch():
    starts = np.random.randint(len(data) - seq_len, size=batch)
    inputs = np.stack([data[i : i + seq_len].astype(np.int64) for i in starts])
    targets = np.stack([data[i + 1 : i + 1 + seq_len].astype(np.int64) for i in starts])
    return inputs, targets


place = 0


def contiguous():
    global place
    size = 2 * batch * seq_len
    if place + size > len(data):
        place = 0
    place += size
    return data[place - size : place].astype(np.int64)


def median(call, samples):
    times = []
    for _ in range(samples):
        start = time.perf_counter_ns()
        result = call()
        times.append(time.perf_counter_ns() - start)
        del result
    return sorted(times)[samples // 2]


# Every page once, so that no sample maps one.
int(data[:: 2048].sum(dtype=np.int64))
print(median(get_batch, 500), median(contiguous, 1000))
