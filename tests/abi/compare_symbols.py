"""What a shared library exports, read with readelf: to set ours beside the distribution's."""

import os
import re
import subprocess

LIBRARY_DIRECTORIES = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]


def find_library(name):
    """The distribution's library, or None."""
    paths = [os.path.join(directory, name) for directory in LIBRARY_DIRECTORIES]
    return next((path for path in paths if os.path.exists(path)), None)


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


def symbols(path, defined=True):
    """{(name, node, is the default): type} of the dynamic symbols that `path` defines, or that it asks for."""
    found = {}
    for line in readelf(path, "--dyn-syms").splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit() or fields[4] == "LOCAL" or fields[6] == "ABS":
            continue
        if (fields[6] != "UND") != defined:
            continue
        name, separator, node = re.fullmatch(r"([^@]+)(@@?)?(.*)", fields[7]).groups()
        found[(name, node, separator == "@@")] = fields[3]
    return found


def version_nodes(path):
    """{node: its parents} of the version definitions."""
    output = readelf(path, "-V")
    output = output[output.index("Version definition"):].split("Version needs")[0]
    nodes, current = {}, None
    for line in output.splitlines():
        if match := re.search(r"Name: (\S+)", line):
            current = match[1]
            nodes[current] = []
        elif match := re.search(r"Parent \d+: (\S+)", line):
            nodes[current].append(match[1])
    return nodes


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", readelf(path, "-d"))


def soname(path):
    return re.search(r"\(SONAME\).*\[(.+)\]", readelf(path, "-d"))[1]
