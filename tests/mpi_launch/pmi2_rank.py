"""A rank that speaks PMI-2 by Slurm's library, and prints what it was told."""

import ctypes
import sys

pmi = ctypes.CDLL("libpmi2.so.0")
text = ctypes.create_string_buffer(2048)
flag = ctypes.c_int()
numbers = [ctypes.c_int() for _ in range(4)]


def check(status, what):
    if status != 0:
        sys.exit(f"{what}: {status}")


check(pmi.PMI2_Init(*map(ctypes.byref, numbers)), "init")
spawned, size, rank, application = (number.value for number in numbers)
check(pmi.PMI2_Job_GetId(text, 2048), "job id")
job = text.value
check(pmi.PMI2_Info_GetJobAttr(b"PMI_process_mapping", text, 2048, ctypes.byref(flag)), "mapping")
mapping = text.value.decode() if flag.value else "none"
check(pmi.PMI2_Info_GetJobAttr(b"no such attribute", text, 2048, ctypes.byref(flag)), "attribute")
assert not flag.value
check(pmi.PMI2_KVS_Put(b"key %d" % rank, b"value = %d" % rank), "put")
check(pmi.PMI2_KVS_Fence(), "fence")
length = ctypes.c_int()
for other in range(size):
    check(pmi.PMI2_KVS_Get(job, other, b"key %d" % other, text, 2048, ctypes.byref(length)), "get")
    assert text.value == b"value = %d" % other, text.value
assert pmi.PMI2_KVS_Get(job, -1, b"nobody's", text, 2048, ctypes.byref(length)) != 0
if rank == size - 1:
    check(pmi.PMI2_Info_PutNodeAttr(b"late", b"x"), "put attribute")
    check(pmi.PMI2_Nameserv_publish(b"my service" if not spawned else b"another", None, b"port 1"), "publish")
check(pmi.PMI2_Info_GetNodeAttr(b"late", text, 2048, ctypes.byref(flag), 1), "get attribute")
assert flag.value and text.value == b"x"
check(pmi.PMI2_KVS_Fence(), "fence")
if sys.argv[1:] == ["lookup"] and not spawned:  # hydra answers it in a way that this library does not understand
    check(pmi.PMI2_Nameserv_lookup(b"my service", None, text, 2048), "lookup")
    assert text.value == b"port 1", text.value
if len(sys.argv) > 2 and sys.argv[1] == "spawn" and not spawned:
    errors = (ctypes.c_int * 2)(9, 9)
    commands, words = (ctypes.c_char_p * 1)(sys.executable.encode()), (ctypes.c_char_p * 2)(sys.argv[0].encode(), sys.argv[2].encode())
    status = pmi.PMI2_Job_Spawn(1, commands, (ctypes.c_int * 1)(2), (ctypes.POINTER(ctypes.c_char_p) * 1)(words), (ctypes.c_int * 1)(2), None,
                                None, 0, None, text, 2048, errors)
    check(status, "spawn")
    print(f"spawned {list(errors)}, another job: {text.value not in (b'', job)}", flush=True)
print(f"rank {rank} of {size}, application {application}, spawned {spawned}, mapping {mapping}", flush=True)
check(pmi.PMI2_Finalize(), "finalize")
