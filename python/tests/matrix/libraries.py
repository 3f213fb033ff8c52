"""The libraries of the matrix: how each makes an array, hands it over, takes one, and shows what it took."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import warnings
from typing import Any, Callable, NamedTuple, Optional

import arro3.core
import awkward as ak
import duckdb
import nanoarrow as na
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from distributed.protocol import deserialize, serialize

import bowstring

from . import addresses
from .cases import same


class Missing(Exception):
    """The library has no such type, so there is nothing to hand over."""


class NotTried(Exception):
    """The library is known to end the process, or to leave things lying about, whoever hands it such data."""


class Producer(NamedTuple):
    """A library that data comes from."""

    name: str
    make: Callable[[pa.Array], Any]  # its own object of the case's values
    addresses: Callable[[Any], Optional[list[int]]]  # where its buffers are, None where nobody can know
    take: Callable[[Any], bowstring.Array]  # how bowstring gets it


class Consumer(NamedTuple):
    """A library that data goes to."""

    name: str
    take: Callable[[bowstring.Array], Any]  # its own object, of what bowstring hands it
    addresses: Callable[[Any], Optional[list[int]]]
    values: Callable[[Any], list[Any]]
    by_bowstring: bool = False  # bowstring makes what goes over, so a copy is its own


def has(make: Callable[[pa.Array], Any]) -> Callable[[pa.Array], Any]:
    """`make`, for a library whose own conversion from pyarrow says what it has."""

    def made(array: pa.Array) -> Any:
        try:
            return make(array)
        except (KeyboardInterrupt, MemoryError):
            raise
        # A library in Rust may panic, which is not an Exception.
        except BaseException as error:
            raise Missing from error

    return made


def by_pyarrow(column: Any) -> pa.Array:
    """The only chunk of what has ``__arrow_c_stream__``, as pyarrow has it, which copies nothing."""
    return pa.chunked_array(column).chunk(0)


def column_addresses(column: Any) -> list[int]:
    return addresses.of(by_pyarrow(column))


def array_addresses(array: np.ndarray) -> list[int]:
    return [array.__array_interface__["data"][0]]


def awkward_addresses(array: Any) -> list[int]:
    _, _, buffers = ak.to_buffers(array)
    return [address for buffer in buffers.values() if buffer.size for address in array_addresses(buffer)]


# nanoarrow and polars.


def to_nanoarrow(array: pa.Array) -> Any:
    if array.type in (pa.string_view(), pa.binary_view()):
        # As below.
        raise Missing
    return na.c_array(array)


def into_nanoarrow(array: bowstring.Array) -> Any:
    if "utf8_view" in str(array.type) or "binary_view" in str(array.type):
        raise NotTried("not tried: it crashes on variadic buffers, pyarrow's own as well")
    return na.c_array(array)


def to_polars(array: pa.Array) -> pl.Series:
    if pa.types.is_union(array.type) or pa.types.is_decimal256(array.type):
        raise Missing
    return pl.Series("c", pl.from_arrow(array))


def into_polars(array: bowstring.Array) -> pl.Series:
    if "decimal256" in str(array.type):
        raise NotTried("not tried: it panics on decimals of 256 bits, pyarrow's own as well")
    return pl.Series("c", array)


# numpy.

_NUMPY = {pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_timestamp, pa.types.is_duration}


def to_numpy(array: pa.Array) -> np.ndarray:
    """A numpy array of what numpy has; its missing times are values of numpy's own."""
    kind, nested = array.type, pa.types.is_fixed_size_list(array.type)
    values = array.flatten() if nested else array
    if values.null_count and not pa.types.is_timestamp(kind):
        raise Missing
    if pa.types.is_fixed_size_binary(kind):
        return np.array(array.to_pylist(), f"S{kind.byte_width}")
    if not any(fits(values.type) for fits in _NUMPY) or getattr(kind, "tz", None):
        raise Missing
    found = np.array(values.to_numpy(zero_copy_only=False))
    return found.reshape(len(array), kind.list_size) if nested else found


# duckdb.


DUCKDB = duckdb.connect(config={"threads": 1})


def to_duckdb(array: pa.Array) -> Any:
    found = DUCKDB.from_arrow(pa.table({"c": array}))
    # What it cannot read it says when it reads.
    found.fetchall()
    return found


def from_duckdb(relation: Any) -> bowstring.Array:
    return bowstring.array(relation)["c"]


class Scanned(NamedTuple):
    """What duckdb read, which is its own from then on."""

    rows: list[Any]


def scan(array: bowstring.Array) -> Scanned:
    batch = as_batch(array)
    return Scanned([row[0] for row in DUCKDB.sql("select c from batch").fetchall()])


def as_batch(array: bowstring.Array) -> bowstring.Array:
    """A batch with the array as its only column, of the same buffers."""
    kind, nodes, buffers, device = array.to_buffers()
    batch = bowstring.Type(pa.struct([pa.field(kind).with_name("c").with_nullable(True)]))
    return bowstring.from_buffers(batch, [(len(array), 0, 0, 1), *nodes], [None, *buffers], device=device)


# Awkward Array.


def to_awkward(array: pa.Array) -> ak.Array:
    found = ak.from_arrow(array)
    if not same(array, awkward_values(found)):
        # It shows decimals as their bytes.
        raise Missing
    return found


def awkward_values(array: ak.Array) -> list[Any]:
    """The values, with moments as numpy has them, because Awkward Array makes numbers of some."""
    return [ak.to_list(item) if isinstance(item, (ak.Array, ak.Record)) else item for item in array]


# distributed and pandas.


def serialised(array: bowstring.Array) -> bowstring.Array:
    header, frames = serialize(array, serializers=["dask", "pickle"], on_error="raise")
    return deserialize(header, frames)


def to_pandas(array: pa.Array) -> pd.Series:
    return pd.Series(array, dtype=pd.ArrowDtype(array.type))


def pandas_addresses(series: pd.Series) -> list[int]:
    held = getattr(series.array, "_pa_array", None)
    return column_addresses(held) if held is not None else array_addresses(series.to_numpy())


PRODUCERS = [
    Producer("pyarrow", lambda array: array, addresses.of, bowstring.array),
    Producer("nanoarrow", has(to_nanoarrow), addresses.of, bowstring.array),
    Producer("arro3", has(arro3.core.Array.from_arrow), addresses.of, bowstring.array),
    Producer("polars", has(to_polars), column_addresses, bowstring.array),
    Producer("pandas", has(to_pandas), pandas_addresses, bowstring.array),
    Producer("duckdb", has(to_duckdb), lambda relation: None, from_duckdb),
    Producer("awkward", has(to_awkward), awkward_addresses, lambda array: bowstring.from_awkward(array)),
    Producer("numpy", has(to_numpy), array_addresses, bowstring.array),
]

CONSUMERS = [
    Consumer("pyarrow", pa.array, addresses.of, lambda array: array.to_pylist()),
    Consumer("nanoarrow", into_nanoarrow, addresses.of, lambda array: pa.array(array).to_pylist()),
    Consumer("arro3", arro3.core.Array.from_arrow, addresses.of, lambda array: pa.array(array).to_pylist()),
    Consumer("polars", into_polars, column_addresses, lambda series: series.to_list()),
    Consumer("pandas", pd.Series.from_arrow, pandas_addresses, lambda series: series.tolist()),
    Consumer("duckdb", scan, lambda found: None, lambda found: found.rows),
    Consumer("awkward", lambda array: array.to_awkward(), awkward_addresses, awkward_values, True),
    Consumer("numpy", np.asarray, array_addresses, list, True),
    Consumer("numpy, DLPack", np.from_dlpack, array_addresses, list, True),
    Consumer("distributed", serialised, addresses.of, lambda array: pa.array(array).to_pylist(), True),
]


def jax_producer() -> Producer:
    """jax, which starts threads that its process keeps."""
    import jax

    def make(array: pa.Array) -> Any:
        jax.config.update("jax_enable_x64", True)
        found = jax.numpy.asarray(to_numpy(array))
        if found.dtype != to_numpy(array).dtype:
            raise Missing
        return found

    return Producer("jax", has(make), lambda array: [array.unsafe_buffer_pointer()], bowstring.array)


def jax_consumer() -> Consumer:
    """jax, by DLPack."""
    import jax

    def take(array: bowstring.Array) -> Any:
        jax.config.update("jax_enable_x64", True)
        return jax.numpy.from_dlpack(array)

    return Consumer(
        "jax", take, lambda array: [array.unsafe_buffer_pointer()], lambda array: list(np.array(array)), True
    )


def has_torch() -> bool:
    """Whether torch, which is gigabytes, is installed."""
    return importlib.util.find_spec("torch") is not None


def torch_addresses(tensor: Any) -> list[int]:
    return [tensor.data_ptr()]


def torch_producer() -> Producer:
    """torch, of what numpy has."""
    import torch

    return Producer("torch", has(lambda array: torch.from_numpy(to_numpy(array))), torch_addresses, bowstring.array)


def torch_consumers() -> list[Consumer]:
    """torch, by DLPack, by its own conversion, and by the package's."""
    import torch

    def to_torch(array: bowstring.Array) -> Any:
        with warnings.catch_warnings():
            # Of memory that is read-only, once.
            warnings.simplefilter("ignore")
            return array.to_torch()

    return [
        Consumer(name, take, torch_addresses, lambda tensor: tensor.tolist(), True)
        for name, take in (
            ("torch, DLPack", torch.from_dlpack), ("torch, asarray", torch.asarray), ("to_torch", to_torch),
        )
    ]


PACKAGES = (
    "pyarrow", "nanoarrow", "arro3-core", "polars", "pandas", "duckdb", "awkward", "numpy", "distributed", "jax",
)


def versions(packages: tuple[str, ...] = PACKAGES) -> str:
    """What the libraries are, in a line."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
