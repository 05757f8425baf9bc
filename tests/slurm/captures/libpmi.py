#!/usr/bin/env python3
"""libpmi.py 1 | 2: a rank that uses Slurm's own client libraries, libpmi.so.0 or libpmi2.so.0, and says what they answer."""

import ctypes
import sys


def number(call, *arguments):
    value = ctypes.c_int(-99)
    status = call(*arguments, ctypes.byref(value))
    return (status, value.value)


def with_libpmi():
    pmi = ctypes.CDLL("libpmi.so.0", mode=ctypes.RTLD_GLOBAL)  # its plugins look for symbols of the library that it loads
    print("PMI_Init", number(pmi.PMI_Init))
    rank, size = number(pmi.PMI_Get_rank)[1], number(pmi.PMI_Get_size)[1]
    print("rank", rank, "size", size, "universe", number(pmi.PMI_Get_universe_size), "appnum", number(pmi.PMI_Get_appnum),
          "lengths", number(pmi.PMI_KVS_Get_name_length_max), number(pmi.PMI_KVS_Get_key_length_max), number(pmi.PMI_KVS_Get_value_length_max),
          "clique", number(pmi.PMI_Get_clique_size))
    name, value = ctypes.create_string_buffer(256), ctypes.create_string_buffer(4096)
    print("PMI_KVS_Get_my_name", pmi.PMI_KVS_Get_my_name(name, 256), name.value)
    print("PMI_KVS_Put", pmi.PMI_KVS_Put(name, b"key-%d" % rank, b"value of %d; = x" % rank))
    print("PMI_KVS_Commit", pmi.PMI_KVS_Commit(name), "PMI_Barrier", pmi.PMI_Barrier())
    for key in (b"key-%d" % (size - 1), b"PMI_process_mapping"):
        print("PMI_KVS_Get", key, pmi.PMI_KVS_Get(name, key, value, 4096), value.value)
    print("PMI_Finalize", pmi.PMI_Finalize())


def with_libpmi2():
    pmi = ctypes.CDLL("libpmi2.so.0")
    spawned, size, rank, appnum = (ctypes.c_int(-99) for _ in range(4))
    print("PMI2_Init", pmi.PMI2_Init(*map(ctypes.byref, (spawned, size, rank, appnum))), spawned.value, size.value, rank.value, appnum.value)
    job, value, length, found = ctypes.create_string_buffer(256), ctypes.create_string_buffer(4096), ctypes.c_int(), ctypes.c_int()
    print("PMI2_Job_GetId", pmi.PMI2_Job_GetId(job, 256), job.value)
    print("PMI2_Info_GetJobAttr", pmi.PMI2_Info_GetJobAttr(b"PMI_process_mapping", value, 1024, ctypes.byref(found)), found.value, value.value)
    print("PMI2_Info_GetSize", number(pmi.PMI2_Info_GetSize))
    print("PMI2_KVS_Put", pmi.PMI2_KVS_Put(b"key-%d" % rank.value, b"value of %d" % rank.value), "PMI2_KVS_Fence", pmi.PMI2_KVS_Fence())
    print("PMI2_KVS_Get", pmi.PMI2_KVS_Get(job, -1, b"key-%d" % (size.value - 1), value, 1024, ctypes.byref(length)), length.value, value.value)
    print("PMI2_KVS_Put", pmi.PMI2_KVS_Put(b"semicolon-%d" % rank.value, b"a;b"), "PMI2_KVS_Fence", pmi.PMI2_KVS_Fence())
    print("PMI2_KVS_Get", pmi.PMI2_KVS_Get(job, -1, b"semicolon-0", value, 1024, ctypes.byref(length)), length.value, value.value)
    print("PMI2_Nameserv_publish", pmi.PMI2_Nameserv_publish(b"service-%d" % rank.value, None, b"tag#0$port#4000$"))
    print("PMI2_Nameserv_lookup", pmi.PMI2_Nameserv_lookup(b"service-%d" % rank.value, None, value, 1024), value.value)
    print("PMI2_Nameserv_unpublish", pmi.PMI2_Nameserv_unpublish(b"service-%d" % rank.value, None))
    print("PMI2_Finalize", pmi.PMI2_Finalize())


if __name__ == "__main__":
    {"1": with_libpmi, "2": with_libpmi2}[sys.argv[1]]()
    sys.stdout.flush()
