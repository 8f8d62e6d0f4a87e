"""Two devices of the CPU, which a process has from its start."""

import os
import subprocess
import sys
from pathlib import Path

import keras


def in_a_process_with_two_devices(file, *arguments):
    """Runs a file of tests as a program."""
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), str(root / "tests" / "shared"), os.environ.get("PYTHONPATH", "")]),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    done = subprocess.run([sys.executable, file, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def halve_the_cpu():
    """Makes two devices for TensorFlow; JAX has them by the environment."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        halves = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], halves)
