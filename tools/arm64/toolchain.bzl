"""The cross compiler of --config=arm64: Debian's, against the folder that tools/arm64/root makes."""

def _impl(repository_ctx):
    root = repository_ctx.os.environ.get("ARM64_ROOT") or repository_ctx.os.environ.get("HOME", "/root") + "/.cache/weft-arm64/root"
    if not repository_ctx.path(root + "/complete").exists:
        fail("Weft for arm64 is compiled against Debian's arm64 packages, which are not in %s: tools/setup arm64" % root)
    if not repository_ctx.which("aarch64-linux-gnu-gcc"):
        fail("There is no cross compiler aarch64-linux-gnu-gcc: tools/setup arm64")
    repository_ctx.file("gcc", """#!/bin/sh
# By itself, the cross compiler looks into this machine's /usr/include for what its own libc does not have.
exec aarch64-linux-gnu-gcc --sysroot=%s -B%s/usr/lib/aarch64-linux-gnu -L%s/usr/lib/aarch64-linux-gnu "$@"
""" % (root, root, root), executable = True)
    version = repository_ctx.execute(["aarch64-linux-gnu-gcc", "-dumpversion"]).stdout.strip()
    repository_ctx.template("BUILD", Label("//tools/arm64:toolchain.BUILD.tpl"), {"%ROOT%": root, "%VERSION%": version})

arm64_toolchain = repository_rule(
    implementation = _impl,
    environ = ["HOME", "ARM64_ROOT", "PATH"],
    configure = True,
)
