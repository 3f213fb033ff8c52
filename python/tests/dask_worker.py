"""What Dask's workers run in the tests: on arrays of ours, with pyarrow for the values."""

import pyarrow as pa

import bowstring


def made(seed, rows):
    """A partition: lists of structs with text, numbers and nulls, different for each seed."""
    values = [
        None if (i + seed) % 11 == 0 else [
            {
                "name": None if (i + j) % 7 == 0 else f"{seed}-{i}-" + "é" * (j + i % 13),
                "n": None if (i + j) % 5 == 0 else i * seed,
            }
            for j in range((i + seed) % 4)
        ]
        for i in range(rows)
    ]
    return pa.array(values, pa.list_(pa.struct([("name", pa.utf8()), ("n", pa.int64())])))


def partition(seed, rows):
    """The partition as an array of ours."""
    return bowstring.array(made(seed, rows))


class _Host:
    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


def values(array):
    """The values, by pyarrow, which checks them."""
    found = pa.array(_Host(array))
    found.validate(full=True)
    return found


def summary(array):
    """Numbers of rows, nulls and structs, the sum of the numbers, and the bytes of text."""
    column = values(array)
    structs = column.flatten()
    numbers = structs.field("n") if len(structs) else pa.array([], pa.int64())
    text = sum(len((item["name"] or "").encode()) for item in structs.to_pylist() if item)
    return len(column), column.null_count, len(structs), sum(n for n in numbers.to_pylist() if n is not None), text


def added(summaries):
    """The sum of several summaries."""
    return tuple(map(sum, zip(*summaries)))


def tail(array):
    """The second half, which shares the memory of the whole."""
    return array[len(array) // 2 :]


def joined(arrays):
    """All partitions as one array, and where they came from."""
    return bowstring.Stream.from_arrays(arrays).collect(), [array.source for array in arrays]


_sent = []


def count_bytes():
    """From now on this process counts what it sends."""
    from distributed.comm.tcp import TCP

    if _sent:
        return
    _sent.append(0)
    plain = TCP.write

    async def write(self, *arguments, **options):
        size = await plain(self, *arguments, **options)
        _sent[0] += size
        return size

    TCP.write = write


def sent():
    """Bytes that this process sent since it counts, on the wire."""
    return _sent[0]


def alive():
    """What is alive here."""
    import gc

    gc.collect()
    return bowstring.live_counts()
