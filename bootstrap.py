"""Sets up `.venv` from the lock: finds a Python that the stack runs on, and uv to install with.

Run by `make setup` with whatever `python3` there is; needs the standard library only, Python 3.6 or later.
A second run sees from a stamp that nothing changed and returns at once.
"""

import argparse
import glob
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
UV_VERSION = "0.13.8"
ZIG_VERSION = "ziglang==0.17.0"
# Debian's Python links extensions with an option that zig's linker does not know; it only makes calls faster
WRAPPER = """#!/bin/sh
for word do
  shift
  [ "$word" = -Wl,-Bsymbolic-functions ] || set -- "$@" "$word"
done
exec "%s" %s "$@"
"""
TORCH = "torch==2.13.0"
STAMP = ".crowdzoo-stamp"
# TFX 1.21 (Python 3.11 - 3.13) has wheels for this glibc and later; TFX 1.16 (Python 3.10) for older ones too
MODERN_GLIBC = (2, 39)
MODERN = ("3.13", "3.12", "3.11")
FOR_ALL = ("3.10",)
SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin")


def say(text, to=sys.stdout):
    """Print at once, also where the output is a file."""
    print(text, file=to, flush=True)


def stop(text):
    """End with a message for the user."""
    sys.exit("setup: " + text)


def glibc():
    """Version of the C library as a pair, or None where it is not glibc."""
    name, version = platform.libc_ver()
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(match.group(1)), int(match.group(2))) if name == "glibc" and match else None


def wanted_versions():
    """Python versions to try, best first, and the reason in words."""
    found = glibc()
    if sys.platform == "darwin":
        return MODERN + FOR_ALL, "macOS"
    if found is None:
        stop("TensorFlow and TFX have wheels for Linux with glibc and for macOS; this is %s." % platform.platform())
    text = "glibc %d.%d" % found
    if found >= MODERN_GLIBC:
        return MODERN + FOR_ALL, text + ", new enough for TFX 1.21"
    return FOR_ALL, text + ", older than the 2.39 that TFX 1.21 needs, so TFX 1.16"


def version_of(python):
    """'3.10' for a working interpreter, else None (a pyenv shim exists for versions that are switched off)."""
    return ask(python, "import sys, venv; print('%d.%d' % sys.version_info[:2])")


def has_headers(python):
    """Whether Python.h is there: one of TFX's dependencies has no wheels and is compiled."""
    code = "import os, sysconfig as s; print(os.path.exists(os.path.join(s.get_paths()['include'], 'Python.h')))"
    return ask(python, code) == "True"


def ask(python, code):
    """What the interpreter prints for the code, or None where it fails."""
    try:
        done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode().strip() if done.returncode == 0 else None


def candidates(version):
    """Places where an interpreter of this version may be, also off the PATH."""
    name = "python" + version
    yield shutil.which(name)
    yield shutil.which("python3")
    home = os.path.expanduser("~")
    for folder in (os.environ.get("PYENV_ROOT"), os.path.join(home, ".pyenv")):
        if folder:
            pattern = os.path.join(folder, "versions", version + ".*", "bin", name)
            for path in sorted(glob.glob(pattern), key=patch_number, reverse=True):
                yield path
    data = os.environ.get("XDG_DATA_HOME", os.path.join(home, ".local", "share"))
    for path in sorted(glob.glob(os.path.join(data, "uv", "python", "cpython-" + version + ".*", "bin", name))):
        yield path
    for folder in SYSTEM_FOLDERS:
        yield os.path.join(folder, name)


def patch_number(path):
    """Patch level in a path such as .../3.10.13/bin/python3.10."""
    found = re.search(r"\d+\.\d+\.(\d+)", path)
    return int(found.group(1)) if found else -1


def find_python(versions):
    """First working interpreter for the versions in their order, or None."""
    for version in versions:
        seen = set()
        for path in candidates(version):
            if path and path not in seen and os.path.exists(path):
                seen.add(path)
                if version_of(path) == version:
                    return path
    return None


def find_or_install_compiler(uv, env):
    """Point CC and CXX to a C++ compiler: the machine's own, else the one in the package ziglang."""
    if env.get("CXX") or any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        return
    folder = os.path.join(ROOT, ".venv-tools", "zig")
    say("setup: no C++ compiler here, installing %s for the one dependency that has to be compiled" % ZIG_VERSION)
    install = [uv, "pip", "install", "-q", "--target", folder, "--python", sys.executable, ZIG_VERSION]
    if subprocess.run(install, env=env).returncode != 0:
        stop("a C++ compiler is needed (Debian: apt install g++) and the replacement could not be installed.")
    for variable, command in (("CC", "cc"), ("CXX", "c++")):
        path = os.path.join(folder, command)
        with open(path, "w") as file:
            file.write(WRAPPER % (os.path.join(folder, "ziglang", "zig"), command))
        os.chmod(path, 0o755)
        env[variable] = path


def find_uv():
    """Path of uv: the one on the PATH, else one that pip puts into `.venv-tools`."""
    found = shutil.which("uv")
    if found:
        return found
    folder = os.path.join(ROOT, ".venv-tools")
    uv = os.path.join(folder, "bin", "uv")
    if os.path.exists(uv):
        return uv
    say("setup: installing uv %s with pip" % UV_VERSION, to=sys.stderr)
    package = "uv==" + UV_VERSION
    direct = [sys.executable, "-m", "pip", "install", "-q", "--target", folder, package]
    if subprocess.run(direct, stderr=subprocess.DEVNULL).returncode != 0:  # this Python may have venv but no pip
        shutil.rmtree(folder, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", folder])
        if made.returncode != 0 or subprocess.run([uv[:-2] + "pip", "install", "-q", package]).returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            stop(
                "pip could not install uv. Install it (Debian: apt install python3-pip python3-venv; or see uv's own "
                "documentation) so that `uv --version` works, and run this again."
            )
    return uv


def environment():
    """Environment for uv: pip's own find-links setting counts too."""
    env = dict(os.environ)
    if env.get("PIP_FIND_LINKS"):
        env.setdefault("UV_FIND_LINKS", env["PIP_FIND_LINKS"].replace(" ", ","))
    env.pop("VIRTUAL_ENV", None)
    return env


def digest(paths, words):
    """Hash of the files' contents and of the words."""
    state = hashlib.sha256(repr(words).encode())
    for path in paths:
        with open(os.path.join(ROOT, path), "rb") as file:
            state.update(file.read())
    return state.hexdigest()


def fresh(folder, stamp):
    """Whether the environment in the folder was set up with this very stamp."""
    path = os.path.join(ROOT, folder, STAMP)
    if not os.path.exists(path) or version_of(os.path.join(ROOT, folder, "bin", "python")) is None:
        return False
    with open(path) as file:
        return file.read() == stamp


def write_stamp(folder, stamp):
    """Mark the environment as complete: the last thing that is done."""
    with open(os.path.join(ROOT, folder, STAMP), "w") as file:
        file.write(stamp)


def python_for(uv, versions, why):
    """An interpreter that is there, else one that uv downloads, else a clear end."""
    python = find_python(versions)
    if python:
        return python
    version = versions[-1]
    say("setup: no Python %s here (%s); asking uv to download %s" % (" or ".join(versions), why, version))
    if subprocess.run([uv, "python", "install", version], env=environment()).returncode == 0:
        python = find_python((version,))
    if not python:
        stop(
            "Python %s is needed (%s) and could not be found or downloaded. Install it, for example with "
            "`pyenv install %s` or your system's packages, and run this again." % (" or ".join(versions), why, version)
        )
    return python


def set_up_main():
    """`.venv` with every extra but `gpu` and the development tools, exactly as locked."""
    versions, why = wanted_versions()
    stamp = digest(["uv.lock", "pyproject.toml", "bootstrap.py"], [versions, ROOT])
    if fresh(".venv", stamp):
        return
    uv = find_uv()
    python = python_for(uv, versions, why)
    say("setup: Python %s (%s)" % (version_of(python), why))
    if not has_headers(python):
        stop(
            "%s has no C headers (Python.h). Install them (Debian: apt install python%s-dev) and run this again."
            % (python, version_of(python))
        )
    env = environment()
    find_or_install_compiler(uv, env)
    command = [
        uv,
        "sync",
        "--frozen",
        "--python",
        python,
        "--no-python-downloads",
        "--all-extras",
        "--no-extra",
        "gpu",
        "--group",
        "dev",
        "--compile-bytecode",
    ]  # byte-compiled, TFX imports in half the time
    if subprocess.run(command, cwd=ROOT, env=env).returncode != 0:
        stop("uv could not install the locked packages; its message is above. Run `make setup` again once it is fixed.")
    write_stamp(".venv", stamp)


def set_up_from(listed, folder, what):
    """The environment in a folder with the packages of a list; returns its Python."""
    stamp = digest([listed, "bootstrap.py"], [ROOT])
    path = os.path.join(ROOT, folder)
    inside = os.path.join(path, "bin", "python")
    env = environment()
    if not fresh(folder, stamp):
        python = python_for(find_uv(), MODERN, what)
        if not install(["venv", "-q", "--clear", "--python", python, path], env):
            stop("uv could not make %s; its message is above." % folder)
        if not install(["pip", "install", "-q", "--python", inside, "-r", os.path.join(ROOT, listed)], env):
            stop("uv could not install %s; its message is above." % listed)
        write_stamp(folder, stamp)
    return inside


def set_up_backends(names):
    """`.venv-backends`: Keras with JAX, and with PyTorch where it is named, beside the TensorFlow one."""
    inside = set_up_from(os.path.join("tests", "backends.txt"), ".venv-backends", "JAX and PyTorch")
    folder = os.path.join(ROOT, ".venv-backends")
    env = environment()
    if "torch" in names and not glob.glob(os.path.join(folder, "lib", "python*", "site-packages", "torch")):
        add = ["pip", "install", "-q", "--python", inside]
        if not install([*add, TORCH + "+cpu"], env, stderr=subprocess.DEVNULL):
            say("setup: there is no CPU build of PyTorch here, so the registry's is installed (about 4.5 GB)")
            if not install([*add, TORCH], env):
                stop("uv could not install %s; its message is above." % TORCH)


def install(arguments, env, **options):
    """Whether uv does what the arguments say."""
    return subprocess.run([find_uv(), *arguments], cwd=ROOT, env=env, **options).returncode == 0


def main():
    """Set up what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--backends", nargs="+", default=[], choices=["jax", "torch"], help="also set up .venv-backends with these"
    )
    parser.add_argument("--site", action="store_true", help="also set up .venv-site, which builds the documentation")
    parser.add_argument("--uv", action="store_true", help="only print the path of uv, which is installed if need be")
    arguments = parser.parse_args()
    if arguments.uv:
        say(find_uv())
        return
    set_up_main()
    if arguments.backends:
        set_up_backends(arguments.backends)
    if arguments.site:
        set_up_from(os.path.join("docs", "site", "requirements.txt"), ".venv-site", "the documentation site")


if __name__ == "__main__":
    main()
