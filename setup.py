"""Packages of the distribution; all else is in pyproject.toml."""

from setuptools import find_packages, setup

# Top-level folders are one import name: `components/` is `crowdzoo.components`, and so on.
FOLDERS = {f"crowdzoo.{folder}": folder for folder in ("components", "pipelines", "serving")}

setup(
    packages=[
        *find_packages(include=["crowdzoo", "crowdzoo.*"]),
        *FOLDERS,
        *(f"{name}.{inner}" for name, folder in FOLDERS.items() for inner in find_packages(folder)),
    ],
    package_dir={"crowdzoo": "crowdzoo", **FOLDERS},
)
