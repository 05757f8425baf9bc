"""Run by pyverbs_test.py under `weft run`: pyverbs.py objects|fork, or serve|connect PORT."""

import os
import sys

import pyverbs.cm_enums as cm
import pyverbs.device as device
import pyverbs.enums as e
from pyverbs import fork
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.cq import CQ, CompChannel
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

ADDRESS = "127.0.0.1"


def qp_attributes(cq=None):
    return QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(10, 10, 1, 1, 0))


def use_objects():
    context = device.Context(name="weft_lo")
    port = context.query_port(1)
    assert port.state == e.IBV_PORT_ACTIVE and port.link_layer == e.IBV_LINK_LAYER_ETHERNET
    gids = context.query_gid_table(port.gid_tbl_len)
    assert "0000:0000:0000:0000:0000:ffff:7f00:0001" == str(context.query_gid(1, 0)) == gids[0].gid_str()
    assert gids[0].gid_type == context.query_gid_ex(1, 0).gid_type
    assert context.query_device().max_qp == context.query_device_ex().orig_attr.max_qp
    assert context.query_pkey(1, 0) == 0xffff
    pd = PD(context)
    mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
    mr.write(b"weft", 4)
    assert mr.read(4, 0) == b"weft"
    channel = CompChannel(context)
    cq = CQ(context, 100, None, channel, 0)
    cq.req_notify()
    assert cq.poll() == (0, [])
    qp = QP(pd, qp_attributes(cq), QPAttr(port_num=1))
    qp.to_init(QPAttr(port_num=1))
    assert qp.query(e.IBV_QP_STATE)[0].qp_state == e.IBV_QPS_INIT
    try:
        MR(pd, 4096, e.IBV_ACCESS_REMOTE_WRITE)
        raise AssertionError("remote write without local write was allowed")
    except PyverbsRDMAError as error:
        assert error.error_code == 22, error
    for thing in (qp, cq, channel, mr, pd, context):
        thing.close()


def objects():
    for listed in device.get_device_list():
        print(listed.name.decode(), listed.node_type, listed.transport_type)
    use_objects()


def after_fork():
    """Verbs in the parent, in its child, in the child's child, and in the parent again."""
    fork.fork_init()
    assert fork.is_fork_initialized() == e.IBV_FORK_UNNEEDED
    use_objects()
    child = os.fork()
    if child == 0:
        use_objects()
        grandchild = os.fork()
        if grandchild == 0:
            use_objects()
            os._exit(0)
        os._exit(os.waitpid(grandchild, 0)[1])
    assert os.waitpid(child, 0)[1] == 0
    use_objects()
    print("ok")


def serve(port):
    info = AddrInfo(src=ADDRESS, src_service=port, port_space=cm.RDMA_PS_TCP, flags=cm.RAI_PASSIVE)
    listener = CMID(creator=info, qp_init_attr=qp_attributes())
    listener.listen()
    connection = listener.get_request()
    message = connection.reg_msgs(64)
    connection.post_recv(message)
    connection.accept()
    connection.get_recv_comp()
    assert message.read(5, 0) == b"hello"
    message.write(b"world", 5)
    connection.post_send(message)
    connection.get_send_comp()
    connection.disconnect()


def connect(port):
    info = AddrInfo(src=ADDRESS, dst=ADDRESS, dst_service=port, port_space=cm.RDMA_PS_TCP, flags=0)
    connection = CMID(creator=info, qp_init_attr=qp_attributes())
    answer = connection.reg_msgs(64)
    connection.post_recv(answer)
    connection.connect()
    message = connection.reg_msgs(64)
    message.write(b"hello", 5)
    connection.post_send(message)
    connection.get_send_comp()
    connection.get_recv_comp()
    print(answer.read(5, 0).decode())


{"objects": objects, "fork": after_fork, "serve": serve, "connect": connect}[sys.argv[1]](*sys.argv[2:])
