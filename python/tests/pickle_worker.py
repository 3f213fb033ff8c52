"""What the tests of pickling run in another process."""

import bowstring


def doubled(array):
    """The array twice, and where its first buffer with bytes was here."""
    assert isinstance(array, bowstring.Array)
    return {"again": array, "half": array[: len(array) // 2]}


def described(what):
    """The text of a type, or the bytes of a buffer."""
    return str(what) if isinstance(what, bowstring.Type) else what.read()


def alive():
    """What the process has alive, once garbage was collected."""
    import gc

    gc.collect()
    return bowstring.live_counts()
