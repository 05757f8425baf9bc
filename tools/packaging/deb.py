#!/usr/bin/env python3
"""deb.py --prefix PREFIX --version VERSION --arch ARCH --output DIR [--libraries DIR]: makes weft_VERSION_ARCH.deb and weft-mpi_VERSION_ARCH.deb.

PREFIX is what tools/install-files makes. Each of its files goes into one of the packages, by the table below; one that the table does not
know is an error. SOURCE_DATE_EPOCH is the date of every file: the same PREFIX gives the same bytes. For another architecture than this
machine's, --libraries is a folder with packages of that architecture, as tools/arm64/root makes it. tools/package calls this.
"""

import argparse
import dataclasses
import fnmatch
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MAINTAINER = "Weft maintainers <maintainers@weft.example>"
COMPILERS = ["mpicc", "mpicxx", "mpic++", "mpif77", "mpif90", "mpifort"]

# Which package a file of PREFIX goes into, and its path there; the first pattern that matches counts. "{}" is what "*" stands for.
# Nothing has the name of a file of the distribution: the libraries are where the loader does not look by itself, and what MPICH and Open MPI
# have too ends in ".weft" and gets its usual name by update-alternatives.
PLACES = [
    ("bin/weft", "weft", "usr/bin/weft"),
    ("bin/impirun", "weft-mpi", "usr/bin/impirun"),
    ("bin/*", "weft-mpi", "usr/bin/{}.weft"),
    ("include/mpi.h", "weft-mpi", "usr/lib/weft/include/mpi.h"),
    ("include/*", "weft", "usr/include/{}"),
    ("lib/weft/libmpi*", "weft-mpi", "usr/lib/weft/libmpi{}"),
    ("lib/weft/*", "weft", "usr/lib/weft/{}"),
    ("share/man/man1/mpiexec.1", "weft-mpi", "usr/share/man/man1/mpiexec.weft.1"),
    ("share/man/man1/impirun.1", "weft-mpi", "usr/share/man/man1/impirun.1"),
    ("share/man/*", "weft", "usr/share/man/{}"),
    ("share/weft/examples/mpi/*", "weft-mpi", "usr/share/weft/examples/mpi/{}"),
    ("share/weft/*", "weft", "usr/share/weft/{}"),
    ("share/zsh/site-functions/*", "weft", "usr/share/zsh/vendor-completions/{}"),
    ("share/doc/weft/LICENSE", None, None),  # in the file copyright
    ("share/*", "weft", "usr/share/{}"),
]


@dataclasses.dataclass
class Package:
    name: str
    summary: str
    description: str
    relations: dict


def packages(version):
    return [
        Package("weft", "RDMA in software: verbs programs without RDMA hardware",
                """\
 Weft runs unmodified programs that use libibverbs and librdmacm on any machine
 with a network: each interface is an RDMA device. It needs no RDMA adapter, no
 kernel module and no root, and what it puts on the wire is standard iWARP.
 .
 A program runs on Weft if it is started by "weft run" only: the libraries of
 the distribution stay as they are for all others. This package has the command
 weft, its libraries, manuals and guides.""",
                {"Suggests": "weft-mpi, ibverbs-utils, rdmacm-utils, perftest"}),
        Package("weft-mpi", "MPI library whose one-sided operations travel by software RDMA",
                """\
 Weft's MPI library keeps the ABI of MPICH: programs that were compiled against
 MPICH run on it. Messages travel over sockets or the memory of the host,
 one-sided operations as RDMA.
 .
 This package has mpiexec, impirun (one job across several MPI libraries), the
 wrappers of the compilers (mpicc.weft and others, which take part in the
 alternatives of MPICH and Open MPI), the library and examples.""",
                {"Depends": f"weft (= {version})", "Recommends": "gcc | c-compiler",
                 "Suggests": "gfortran, libmpich-dev, openssh-client"}),
    ]


def alternatives():
    """The commands of update-alternatives in Debian's groups "mpi" and "mpirun", below MPICH (40) and Open MPI (50)."""
    slaves = [f"--slave /usr/bin/{name} {name} /usr/bin/{name}.weft" for name in COMPILERS if name != "mpicc"]
    slaves.append("--slave /usr/bin/mpiCC mpiCC /usr/bin/mpicxx.weft")
    mpirun = ["--slave /usr/bin/mpiexec mpiexec /usr/bin/mpiexec.weft"]
    mpirun += [f"--slave /usr/share/man/man1/{name}.1.gz {name}.1.gz /usr/share/man/man1/mpiexec.weft.1.gz" for name in ("mpiexec", "mpirun")]
    return [("mpi", "/usr/bin/mpicc", "/usr/bin/mpicc.weft", slaves), ("mpirun", "/usr/bin/mpirun", "/usr/bin/mpirun.weft", mpirun)]


def maintainer_scripts():
    """Of weft-mpi: name and text."""
    install = "\n".join("  " + " \\\n    ".join([f"update-alternatives --install {link} {group} {path} 30", *slaves])
                        for group, link, path, slaves in alternatives())
    remove = "\n".join(f"  update-alternatives --remove {group} {path}" for group, _, path, _ in alternatives())
    return {
        "postinst": f"#!/bin/sh\nset -e\ncase $1 in configure | abort-upgrade | abort-deconfigure | abort-remove)\n{install} ;;\nesac\n",
        "prerm": f"#!/bin/sh\nset -e\ncase $1 in remove | deconfigure)\n{remove} ;;\nesac\n",
    }


def place_of(path):
    """The package and the path there of a file of PREFIX; (None, None) for one that no package has."""
    for pattern, package, target in PLACES:
        if fnmatch.fnmatchcase(path, pattern):
            return package, target and target.format(path[pattern.index("*"):] if "*" in pattern else "")
    sys.exit(f"deb.py: no package has a place for {path}: see PLACES")


def is_elf(path):
    if os.path.islink(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def compress(path):
    with open(path, "rb") as file:
        content = file.read()
    with open(path + ".gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(content)
    os.remove(path)


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def lay_out(prefix, roots):
    """Copies the files of PREFIX to the roots of the packages."""
    for folder, folders, files in os.walk(prefix):
        for name in files + [d for d in folders if os.path.islink(os.path.join(folder, d))]:
            source = os.path.join(folder, name)
            package, target = place_of(os.path.relpath(source, prefix))
            if package is None:
                continue
            target = os.path.join(roots[package], target)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.islink(source):
                link = os.readlink(source)
                os.symlink(link + ".weft" if target.endswith(".weft") else link, target)
            else:
                shutil.copy(source, target)
                os.chmod(target, 0o755 if os.access(source, os.X_OK) else 0o644)


def finish_files(package, root, arch, version, date):
    """Strips, compresses manuals, adds copyright and changelog. Returns the programs and libraries, relative to the root."""
    elves = []
    strip = "strip" if arch == host_architecture() else gnu_type(arch) + "-strip"
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            if is_elf(path):
                subprocess.run([strip, "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", path], check=True)
                elves.append(os.path.relpath(path, root))
            elif "/usr/share/man/" in path:
                compress(path)
    docs = os.path.join(root, "usr/share/doc", package)
    with open(os.path.join(HERE, "copyright")) as file:
        write(os.path.join(docs, "copyright"), file.read())
    stamp = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(date))
    write(os.path.join(docs, "changelog"), f"{package} ({version}) unstable; urgency=medium\n\n"
          f"  * What changed for users: /usr/share/doc/weft/CHANGELOG.md.\n\n -- {MAINTAINER}  {stamp}\n")
    compress(os.path.join(docs, "changelog"))
    return sorted(elves)


def host_architecture():
    return subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()


def gnu_type(arch):
    return subprocess.run(["dpkg-architecture", "-a", arch, "-q", "DEB_HOST_GNU_TYPE"], check=True, capture_output=True, text=True).stdout.strip()


def library_dependencies(package, root, elves, roots, arch, libraries, work):
    """What dpkg-shlibdeps finds, on this machine or in the folder `libraries`; Weft's own libraries are not the distribution's of the same
    name."""
    write(os.path.join(work, "debian/control"), f"Source: weft\n\nPackage: {package}\nArchitecture: any\n")
    own = "" if package == "weft" else "weft"
    write(os.path.join(work, "debian/shlibs.local"), "".join(f"{name} {number} {own}\n" for name, number in
                                                            (("libibverbs", 1), ("librdmacm", 1), ("libmpich", 12))))
    command = ["dpkg-shlibdeps", "-O", "--warnings=0", "-Ldebian/shlibs.local"]
    command += [f"-l{os.path.join(r, 'usr/lib/weft')}" for r in roots.values()]
    command += [f"-S{r}" for r in roots.values()]
    if libraries:
        command += [f"--admindir={libraries}/var/lib/dpkg", f"-l{libraries}/usr/lib/{gnu_type(arch)}"]
    command += [os.path.join(root, path) for path in elves]
    for r in roots.values():  # dpkg-shlibdeps takes a folder for a package only then
        os.makedirs(os.path.join(r, "DEBIAN"), exist_ok=True)
        write(os.path.join(r, "DEBIAN/control"), "")
    done = subprocess.run(command, cwd=work, env={**os.environ, "DEB_HOST_ARCH": arch}, capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.startswith("shlibs:Depends="):
        sys.exit(f"deb.py: dpkg-shlibdeps failed for {package}:\n{done.stdout}{done.stderr}")
    words = done.stdout.strip().removeprefix("shlibs:Depends=").split(", ")
    return [word for word in words if word and word != "weft"]


def installed_size(root):
    """In KiB, as dpkg-gencontrol counts: each file's rounded up, a KiB for anything else."""
    total = 0
    for folder, folders, files in os.walk(root):
        if os.path.relpath(folder, root).split("/")[0] == "DEBIAN":
            continue
        for name in folders + files:
            path = os.path.join(folder, name)
            total += 1 if os.path.islink(path) or os.path.isdir(path) else -(-os.path.getsize(path) // 1024)
    return total


def write_control(package, root, version, arch, depends):
    relations = dict(package.relations)
    all_depends = [word for word in (relations.pop("Depends", ""), *depends) if word]
    lines = [f"Package: {package.name}", f"Version: {version}", f"Architecture: {arch}", f"Maintainer: {MAINTAINER}",
             f"Installed-Size: {installed_size(root)}", "Depends: " + ", ".join(all_depends)]
    lines += [f"{name}: {value}" for name, value in relations.items()]
    lines += ["Section: net", "Priority: optional", f"Description: {package.summary}", package.description]
    sums = []
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            if not os.path.islink(path) and not relative.startswith("DEBIAN/"):
                with open(path, "rb") as file:
                    sums.append(f"{hashlib.md5(file.read()).hexdigest()}  {relative}\n")
    write(os.path.join(root, "DEBIAN/md5sums"), "".join(sorted(sums, key=lambda line: line.split("  ")[1])))
    write(os.path.join(root, "DEBIAN/control"), "\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    for name in ("prefix", "version", "arch", "output"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--libraries")
    wanted = parser.parse_args()
    date = int(os.environ["SOURCE_DATE_EPOCH"])
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as work:
        work = os.path.realpath(work)
        all_packages = packages(wanted.version)
        roots = {package.name: os.path.join(work, package.name) for package in all_packages}
        lay_out(os.path.abspath(wanted.prefix), roots)
        elves = {name: finish_files(name, root, wanted.arch, wanted.version, date) for name, root in roots.items()}
        depends = {name: library_dependencies(name, root, elves[name], roots, wanted.arch, wanted.libraries, work) for name, root in roots.items()}
        for name, text in maintainer_scripts().items():
            write(os.path.join(roots["weft-mpi"], "DEBIAN", name), text, 0o755)
        os.makedirs(wanted.output, exist_ok=True)
        for package in all_packages:
            root = roots[package.name]
            write_control(package, root, wanted.version, wanted.arch, depends[package.name])
            file = os.path.join(wanted.output, f"{package.name}_{wanted.version}_{wanted.arch}.deb")
            subprocess.run(["dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "--build", root, file], check=True, stdout=subprocess.DEVNULL)
            print(file)


if __name__ == "__main__":
    main()
