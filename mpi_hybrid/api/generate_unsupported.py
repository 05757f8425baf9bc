#!/usr/bin/env python3
"""generate_unsupported.py MPI_H OBJECT_OR_ARCHIVE...: writes to stdout a definition of each function that mpi.h declares and none of
the objects defines. Each sets its output handles to null and returns MPI_ERR_UNSUPPORTED_OPERATION through the error handler of its
communicator, window or file; those of MPI_FILE_NULL for what makes, deletes or prepares files."""
import re
import subprocess
import sys

HANDLES = {
    "MPI_Comm": "MPI_COMM_NULL", "MPI_Datatype": "MPI_DATATYPE_NULL", "MPI_File": "MPI_FILE_NULL", "MPI_Group": "MPI_GROUP_NULL",
    "MPI_Info": "MPI_INFO_NULL", "MPI_Message": "MPI_MESSAGE_NULL", "MPI_Op": "MPI_OP_NULL", "MPI_Request": "MPI_REQUEST_NULL",
    "MPIO_Request": "MPI_REQUEST_NULL", "MPI_Session": "MPI_SESSION_NULL", "MPI_Win": "MPI_WIN_NULL",
    "MPI_Errhandler": "MPI_ERRHANDLER_NULL",
}


# Defined by libmpichfort.so.12.
ELSEWHERE = re.compile(r"PMPI_Status_(c2f08|f082c|f082f|f2f08)$")


def declared(header):
    """(type, prefix, name, parameters) of each PMPI_ function."""
    return re.findall(r"^(\w[\w *]*?)\b(P?[QM]PI(?:X_|_))(\w+)\((.*)\);$", header, re.M)


def defined(objects):
    output = subprocess.run(["nm", "--defined-only", *objects], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    return set(re.findall(r"^[0-9a-f]+ [TW] (\w+)$", output, re.M))


def name_of(parameter):
    return re.search(r"(\w+)(\[\])*$", parameter).group(1)


def definition(prefix, name, parameters):
    listed = [] if parameters == "void" else parameters.split(", ")
    lines = [f"int P{prefix}{name}({parameters}) {{"]
    report = "UnsupportedAnywhere(%s)"
    # MPI 4.0 section 14.7: with no file yet, as in MPI_File_open, the handler of MPI_FILE_NULL is told, not that of the communicator.
    if name.startswith("File_") or name.startswith("Register_datarep"):
        report = "UnsupportedOnFile(%s, MPI_FILE_NULL)"
    for parameter in listed:
        handle = re.match(r"(\w+) \*(\w+)$", parameter)
        if handle and handle.group(1) in HANDLES:
            lines.append(f"  if ({handle.group(2)} != nullptr) *{handle.group(2)} = {HANDLES[handle.group(1)]};")
        for kind in ("Comm", "Win", "File"):
            if not re.match(rf"MPI_{kind} \w+$", parameter):
                continue
            if kind == "File" or report.startswith("UnsupportedAnywhere"):
                report = f"UnsupportedOn{kind}(%s, {name_of(parameter)})"
    call = report % f'"{prefix}{name}"'
    lines += [f"  return {call};", "}"]
    lines.append(f'extern "C" decltype(P{prefix}{name}) {prefix}{name} __attribute__((weak, alias("P{prefix}{name}")));')
    return "\n".join(lines) + "\n"


def main():
    with open(sys.argv[1]) as file:
        header = file.read()
    have = defined(sys.argv[2:])
    print('#include "mpi_hybrid/api/unsupported.h"\n\nusing namespace weft::mpi;\n')
    for result, prefix, name, parameters in declared(header):
        if not prefix.startswith("P") or prefix + name in have or ELSEWHERE.match(prefix + name):
            continue
        if result.strip() != "int":
            sys.exit(f"{prefix}{name} returns {result.strip()}, which cannot say that it is unsupported: define it")
        print(definition(prefix[1:], name, parameters))


main()
