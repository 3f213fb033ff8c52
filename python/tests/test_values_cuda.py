"""Values, parts and checks of memory of CUDA, by the simulated driver."""

import pytest
from moving_cases import NO_CUDA_SIM, has_cuda_sim, with_cuda


@pytest.mark.skipif(not has_cuda_sim(), reason=NO_CUDA_SIM)
@pytest.mark.parametrize("what", ["values", "pinned", "cupy", "parts", "frames", "checks"])
def test_with_the_simulated_driver(what):
    with_cuda("values_cuda_worker.py", what)
