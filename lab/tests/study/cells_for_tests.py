"""Cell functions that the processes of a study import."""

import os
import signal
import time

import numpy as np
import xarray as xr

from tiltmeter.record import Origin, Trajectory


def numbers(settings):
    """Deterministic numbers with awkward digits."""
    generator = np.random.default_rng([settings["seed"], int(1000 * settings["a"])])
    values = generator.normal(size=3) / 3
    return xr.Dataset({"x": values[0], "y": ("k", values)}, coords={"k": [1, 2, 3]})


def logged(settings):
    """Says in a file that it began; takes a moment."""
    with open(settings["log"], "a") as file:
        file.write(f"{settings['a']}-{settings['seed']}\n")
    time.sleep(settings["pause"])
    return numbers(settings)


def curve(settings):
    loss = xr.DataArray(
        [[1.0, 2.0], [0.5, settings["a"]]],
        dims=("time", "group"),
        coords={"time": [0, 1], "group": ["+", "-"]},
    )
    return Trajectory({"loss": loss}, "step", Origin("test", seeds=(settings["seed"],)))


def fails_at_two(settings):
    if settings["a"] == 2:
        raise RuntimeError("two is bad")
    return numbers(settings)


def troubled(settings):
    """Every kind of trouble, by name."""
    with open(settings["log"], "a") as file:
        file.write(f"{settings['trouble']}\n")
    if settings["trouble"] == "raises":
        raise RuntimeError("no luck")
    if settings["trouble"] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if settings["trouble"] == "hangs":
        time.sleep(60)
    return threads(settings)


def returns_text(settings):
    return "text"


def too_large(settings):
    """More than the limit of file sizes allows, which is how a full disk is tried."""
    return xr.Dataset({"x": ("k", np.zeros(200_000))})


def threads(settings):
    from threadpoolctl import threadpool_info

    print("this goes to the standard error")
    most = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return xr.Dataset({"blas": most, "openmp": int(os.environ["OMP_NUM_THREADS"])})
