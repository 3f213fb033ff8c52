"""cupy and torch, which a machine may lack."""

import gpu


def cupy():
    if gpu.IS_SIMULATED:
        gpu.skip("cupy does not run on the simulated driver")
    try:
        import cupy
    except Exception as error:  # noqa: BLE001: a broken installation is no better than none
        gpu.skip(f"no cupy: {type(error).__name__}: {error}".splitlines()[0])
    gpu.Driver(current=False)
    try:
        cupy.zeros(1)
    except Exception as error:  # noqa: BLE001
        gpu.skip(f"cupy {cupy.__version__} does not work here: {type(error).__name__}: {error}".splitlines()[0])
    return cupy


def torch():
    if gpu.IS_SIMULATED:
        gpu.skip("torch does not run on the simulated driver")
    try:
        import torch
    except Exception as error:  # noqa: BLE001: a broken installation is no better than none
        gpu.skip(f"no torch: {type(error).__name__}: {error}".splitlines()[0])
    gpu.Driver(current=False)
    if not torch.cuda.is_available():
        gpu.skip(f"torch {torch.__version__} finds no CUDA")
    try:
        torch.zeros(1, device="cuda")
    except Exception as error:  # noqa: BLE001
        gpu.skip(f"torch {torch.__version__} does not work here: {type(error).__name__}: {error}".splitlines()[0])
    return torch
