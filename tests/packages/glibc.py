"""Programs and libraries that want a glibc which does not exist yet."""


def version_hash(name):
    """The hash of a version's name (System V ABI), as it stands in a file."""
    value = 0
    for c in name.encode():
        value = (value << 4) + c
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value.to_bytes(4, "little")


def want_newer(path):
    """Changes the file, which wants glibc 2.34, so that it wants 9.99. The loader compares the hash first, then the name."""
    with open(path, "rb") as file:
        content = file.read()
    if b"\0GLIBC_2.34\0" not in content:
        raise AssertionError(f"{path} does not want glibc 2.34")
    content = content.replace(b"\0GLIBC_2.34\0", b"\0GLIBC_9.99\0").replace(version_hash("GLIBC_2.34"), version_hash("GLIBC_9.99"))
    with open(path, "wb") as file:
        file.write(content)
