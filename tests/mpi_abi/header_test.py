"""A program that prints the value of every macro, enumerator and layout of mpi.h, compiled with our header and with MPICH's.

usage: header_test.py OUR_MPI_H
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

OURS = os.path.dirname(os.path.abspath(sys.argv.pop(1)))
THEIRS = next((d for d in ["/usr/include/x86_64-linux-gnu/mpich", "/usr/include/mpich", "/usr/include/aarch64-linux-gnu/mpich"]
               if os.path.exists(d)), None)
if THEIRS is None:
    sys.exit("the header of MPICH is not installed: tools/setup test")

# Names of MPICH's that are no part of its interface, or say how it was built.
INTERNAL = re.compile(r"MPICH_ATTR_|MPICH_API_|MPICH_MPI_H|MPIU_|MPI_INCLUDED|MPICH_DEFINE|.*_DLL_SPEC|.*_ATTR_POINTER|MPICH_PRINTF|"
                      r"BINDING_H|MPICH_STATIC|MPI_PROTO|.*_H_INCLUDED$|QMPI_|MPIR_T_PVAR_CLASS_(FIRST|LAST|NUMBER)$")
TYPES = ["MPI_Aint", "MPI_Comm", "MPI_Count", "MPI_Datatype", "MPI_Errhandler", "MPI_F08_status", "MPI_File", "MPI_Fint", "MPI_Group",
         "MPI_Info", "MPI_Message", "MPI_Offset", "MPI_Op", "MPI_Request", "MPI_Session", "MPI_Status", "MPI_Win", "MPIX_Grequest_class",
         "MPI_T_enum", "MPI_T_cvar_handle", "MPI_T_pvar_handle", "MPI_T_pvar_session", "MPI_T_cb_safety", "MPI_T_source_order"]
FIELDS = [("MPI_Status", f) for f in ("count_lo", "count_hi_and_cancelled", "MPI_SOURCE", "MPI_TAG", "MPI_ERROR")]
FIELDS += [("MPI_F08_status", f) for f in ("count_lo", "count_hi_and_cancelled", "MPI_SOURCE", "MPI_TAG", "MPI_ERROR")]


def preprocess(directory, *options):
    return subprocess.run(["gcc", "-E", *options, "-I", directory, "-x", "c", "-"], input="#include <mpi.h>\n", check=True,
                          capture_output=True, text=True).stdout


def macros(directory):
    """{name: number of parameters} of what mpi.h defines."""
    text = preprocess(directory, "-dD")
    inside, found = False, {}
    for line in text.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            inside = marker[1].startswith(directory)
        elif inside and (define := re.match(r"#define (Q?P?MPI\w*)(\([^)]*\))?( .*)?$", line)):
            if not INTERNAL.match(define[1]) and (define[3] or "").strip():
                found[define[1]] = len(define[2].split(",")) if define[2] else 0
    return found


def enumerators(directory):
    text = re.sub(r"^#.*$", "", preprocess(directory), flags=re.M)
    names = set()
    for body in re.findall(r"\benum\b[^{;()]*\{([^}]*)\}", text):
        names.update(name for name in re.findall(r"\b(MPI\w+)\s*(?:=[^,]*)?(?:,|$)", body.replace("\n", " ")))
    return {name for name in names if not INTERNAL.match(name) and not re.match(r"MPIX?_.*_T$", name) and not name.startswith("QMPI")}


def functions(directory):
    """{name: its type as the compiler writes it, without names of parameters}."""
    text = " ".join(re.sub(r"^#.*$", "", preprocess(directory), flags=re.M).split())
    text = re.sub(r"typedef [^;{]*;", ";", text)
    text = re.sub(r"__attribute__ ?\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
    found = {}
    for result, name, parameters in re.findall(r"(?:^|[;}{]) ?(?:extern )?([\w ]+?[ *]+)(P?MPIX?_\w+) ?\(([^;{]*)\) ?(?=;)", text):
        found[name] = f"{result.strip()} ({','.join(parameter_type(p) for p in parameters.split(','))})"
    return found


def parameter_type(text):
    text = re.sub(r"\brestrict\b", "", text).strip()
    text = re.sub(r"^([\w ]*?\w[ *]+?)(\w+)((?:\[\])*)$", r"\1\3", text) if text not in ("void", "...") else text
    text = text.replace("[]", "*").replace("MPIO_Request", "MPI_Request")
    return re.sub(r"\s+", "", text)


def print_values(directory, names, types):
    lines = ["#include <mpi.h>", "#include <stdio.h>", "#include <stddef.h>", "#include <string.h>",
             "#define SHOW(name, x) printf(\"%s %d %lld\\n\", name, (int)sizeof(x), _Generic((x), char *: text((const char *)(size_t)(x)), "
             "const char *: text((const char *)(size_t)(x)), default: (long long)(size_t)(x)))",
             "static long long text(const char *s) { long long h = 0; for (; *s; ++s) h = h * 31 + *s; return h; }",
             "int main(void) {"]
    for name in sorted(names):
        lines.append(f'  SHOW("{name}", {name});')
    for name in types:
        lines.append(f'  printf("sizeof {name} %d %d\\n", (int)sizeof({name}), (int)_Alignof({name}));')
    for name, field in FIELDS:
        lines.append(f'  printf("offsetof {name} {field} %d\\n", (int)offsetof({name}, {field}));')
    lines.append("  return 0;\n}")
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/values.c", "w") as file:
            file.write("\n".join(lines))
        # Values that are addresses within the library (MPI_DUP_FN) are not printed; nothing needs the library then.
        subprocess.run(["gcc", "-w", "-I", directory, f"{work}/values.c", "-o", f"{work}/values"], check=True)
        return subprocess.run([f"{work}/values"], check=True, capture_output=True, text=True).stdout.splitlines()


# Macros that stand for functions or types rather than values.
def is_value(name):
    return not re.match(r"MPIO_(Wait|Test|Request)$|P?MPIO_\w+$|P?MPI_\w+_(c2f|f2c)$|.*DUP_FN$|PMPI_|MPIR_Dup|MPI_FILE_DEFINED", name)


class HeaderTest(unittest.TestCase):
    maxDiff = None

    def test_every_macro_of_mpichs_header_is_in_ours_with_the_same_parameters(self):
        theirs, ours = macros(THEIRS), macros(OURS)
        self.assertGreater(len(theirs), 300)
        self.assertEqual({name: ours.get(name) for name in theirs if ours.get(name) != theirs[name]}, {})

    def test_constants_and_layouts_are_the_same_under_both(self):
        names = {name for name, parameters in macros(THEIRS).items() if not parameters and is_value(name)} | enumerators(THEIRS)
        self.assertGreater(len(names), 380)
        theirs, ours = print_values(THEIRS, names, TYPES), print_values(OURS, names, TYPES)
        self.assertGreater(len(theirs), 410)
        self.assertEqual([line for line in ours if line not in theirs], [])
        self.assertEqual(ours, theirs)

    def test_each_function_has_the_same_type(self):
        theirs, ours = functions(THEIRS), functions(OURS)
        self.assertGreater(len(theirs), 1250)
        self.assertEqual({name: (ours.get(name), theirs[name]) for name in theirs if ours.get(name) != theirs[name]}, {})


unittest.main()
