"""Arrays between Dask's workers: frames without a copy, as a pickle's buffers out of band.

Nothing here imports distributed. Where there are both, they know each other in whatever order they were imported: a
process that sends arrays by this must not meet one that knows nothing of it.
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any, Optional, Sequence

from ._pickle import array_of, parts_of

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from ._array import Array

_MODULE = "distributed.protocol.serialize"


def to_frames(array: "Array") -> tuple[dict[str, bytes], list[memoryview]]:
    """What distributed sends of an array: a header, and the bytes that it shows, wherever it is."""
    kind, shape, pieces = parts_of(array)
    return {"array": pickle.dumps((kind, shape), protocol=5)}, pieces


def from_frames(header: dict[str, bytes], frames: Sequence[Any]) -> "Array":
    """The array of what arrived, on the memory of the frames, each with an owner of its own."""
    kind, shape = pickle.loads(header["array"])
    return array_of(kind, shape, frames)


def register() -> None:
    """Tells distributed how arrays travel: now if it was imported, else as soon as it is."""
    module = sys.modules.get(_MODULE)
    if module is None:
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
        return
    from ._array import Array

    module.dask_serialize.register(Array)(to_frames)
    module.dask_deserialize.register(Array)(from_frames)


class _Finder:
    """Waits for distributed to be imported; finds nothing itself, and is gone afterwards."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> "Optional[ModuleSpec]":
        """The module's own specification, whose loader tells us once the module is there."""
        if name != _MODULE:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def load_and_tell(module: Any) -> None:
                loader.exec_module = load
                try:
                    load(module)
                except BaseException:
                    sys.meta_path.insert(0, self)
                    raise
                register()

            loader.exec_module = load_and_tell
        return spec
