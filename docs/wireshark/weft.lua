-- What Weft sends between two of its own ends, for Wireshark and tshark (4.0 and later), beside their own iWARP dissector:
--
--   weft           RDMAP messages of opcode 15 (acknowledgements, "no receive is posted", "I start again", XRC's target), and the two bits
--                  of RDMAP's control byte that mean "acknowledge this" and "this Send has immediate data"
--   weft_ud        datagrams of UD queue pairs
--   weft_sidr      rdma_cm's look-up of a UD queue pair by its port
--
-- Once:          tshark -X lua_script:PREFIX/share/weft/wireshark/weft.lua -r FILE
-- For good:      ln -s PREFIX/share/weft/wireshark/weft.lua ~/.local/lib/wireshark/plugins/
-- Display filters: weft.kind == 1 (a receive was missing), weft.acknowledge, weft_ud.destination == 0x123400
--
-- The layouts: rdmap/delivery.h, sim/datagram_header.h, sim/cm/sidr/message.h.

local DELIVERY_OPCODE = 15
local DELIVERY_LENGTH = 16
local SEND_OPCODES = {[3] = true, [4] = true, [5] = true, [6] = true} -- RFC 5040 figure 4
local DELIVERY_KINDS = {[0] = "Acknowledge", [1] = "Not ready", [2] = "Resume", [3] = "Target"}
-- min_rnr_timer of ibv_modify_qp(3), in milliseconds
local RNR_TIMERS = {
  [0] = 655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24,
  15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
}
local RNR_TIMER_NAMES = {}
for code, milliseconds in pairs(RNR_TIMERS) do RNR_TIMER_NAMES[code] = string.format("%.2f ms", milliseconds) end

local weft = Proto("weft", "Weft between two of its ends")
local f = {
  kind = ProtoField.uint8("weft.kind", "Kind", base.DEC, DELIVERY_KINDS),
  timer = ProtoField.uint8("weft.timer", "Try again after", base.DEC, RNR_TIMER_NAMES),
  sequence = ProtoField.uint32("weft.sequence", "Sequence", base.DEC),
  send_msn = ProtoField.uint32("weft.send_msn", "MSN of the next message on queue 0", base.DEC),
  read_msn = ProtoField.uint32("weft.read_msn", "MSN of the next message on queue 1", base.DEC),
  acknowledge = ProtoField.bool("weft.acknowledge", "Acknowledgement wanted", 8, nil, 0x20),
  immediate = ProtoField.uint32("weft.immediate", "Immediate data", base.HEX),
}
weft.fields = {f.kind, f.timer, f.sequence, f.send_msn, f.read_msn, f.acknowledge, f.immediate}
local too_short = ProtoExpert.new("weft.too_short", "A message of opcode 15 is shorter than 16 bytes", expert.group.MALFORMED, expert.severity.ERROR)
local unknown_kind = ProtoExpert.new("weft.unknown_kind", "Unknown kind", expert.group.PROTOCOL, expert.severity.WARN)
weft.experts = {too_short, unknown_kind}

local rdmap_opcode = Field.new("iwarp_rdma.opcode")

-- What a message says, in words for the Info column.
local function delivery_words(kind, timer, sequence)
  if kind == 0 then return "acknowledges " .. sequence end
  if kind == 1 then return "not ready for " .. (sequence + 1) % 4294967296 .. ", again after " .. RNR_TIMER_NAMES[timer] end
  if kind == 2 then return "resumes with " .. sequence end
  if kind == 3 then return "target " .. sequence end
  return "unknown kind " .. kind
end

-- `at` is where the payload of opcode 15 begins in `bytes`, behind 18 bytes of DDP and RDMAP header.
local function add_delivery(bytes, at, tree, pinfo)
  local left = bytes:len() - at
  if left < DELIVERY_LENGTH then
    tree:add(weft, bytes(at - 18), "Weft: a message of opcode 15 that is too short"):add_proto_expert_info(too_short)
    return
  end
  local kind, timer, sequence = bytes(at, 1):uint(), bytes(at + 1, 1):uint() % 32, bytes(at + 4, 4):uint()
  local words = delivery_words(kind, timer, sequence)
  local subtree = tree:add(weft, bytes(at, DELIVERY_LENGTH), "Weft: " .. words)
  local kind_item = subtree:add(f.kind, bytes(at, 1))
  if DELIVERY_KINDS[kind] == nil then kind_item:add_proto_expert_info(unknown_kind) end
  if kind == 1 then subtree:add(f.timer, bytes(at + 1, 1), timer) end
  subtree:add(f.sequence, bytes(at + 4, 4))
  if kind == 1 then
    subtree:add(f.send_msn, bytes(at + 8, 4))
    subtree:add(f.read_msn, bytes(at + 12, 4))
  end
  pinfo.cols.info:append(" [Weft: " .. words .. "]")
end

-- A postdissector: Wireshark's own dissector offers other protocols what Sends carry, but not an opcode that it does not know.
function weft.dissector(_, pinfo, tree)
  for _, opcode in ipairs({rdmap_opcode()}) do
    local bytes, control = opcode.source, opcode.offset -- the DDP control byte is in front of RDMAP's
    local byte = bytes(control, 1):uint()
    local number = byte % 16
    if number == DELIVERY_OPCODE then
      add_delivery(bytes, control + 17, tree, pinfo)
    else
      local wanted, has_immediate = byte % 64 >= 32, byte % 32 >= 16 and SEND_OPCODES[number]
      if wanted or has_immediate then
        local subtree = tree:add(weft, bytes(control, 1), "Weft: " .. (wanted and "acknowledgement wanted" or "") ..
          (wanted and has_immediate and ", " or "") .. (has_immediate and "immediate data" or ""))
        subtree:add(f.acknowledge, bytes(control, 1))
        if has_immediate then subtree:add(f.immediate, bytes(control + 1, 4)) end
      end
    end
  end
end
register_postdissector(weft)

-- Datagrams of UD queue pairs, to whatever port the queue pair's number names; those of groups go to 14791.
local GROUP_PORT = 14791
local UD_LENGTH = 24
local UD_OPCODES = {[0] = "Send", [1] = "Send with Immediate"}
local ud = Proto("weft_ud", "Weft datagram of a UD queue pair")
local u = {
  version = ProtoField.uint8("weft_ud.version", "Version", base.DEC),
  opcode = ProtoField.uint8("weft_ud.opcode", "Opcode", base.DEC, UD_OPCODES),
  traffic_class = ProtoField.uint8("weft_ud.traffic_class", "Traffic class", base.HEX),
  destination = ProtoField.uint24("weft_ud.destination", "Destination queue pair", base.HEX),
  hop_limit = ProtoField.uint8("weft_ud.hop_limit", "Hop limit", base.DEC),
  source = ProtoField.uint24("weft_ud.source", "Source queue pair", base.HEX),
  qkey = ProtoField.uint32("weft_ud.qkey", "Q_Key", base.HEX),
  immediate = ProtoField.uint32("weft_ud.immediate", "Immediate data", base.HEX),
  solicited = ProtoField.bool("weft_ud.solicited", "Solicited event", 16, nil, 0x0001),
  length = ProtoField.uint16("weft_ud.length", "Payload length", base.DEC),
}
ud.fields = {u.version, u.opcode, u.traffic_class, u.destination, u.hop_limit, u.source, u.qkey, u.immediate, u.solicited, u.length}

local function is_ud(bytes)
  return bytes:len() >= UD_LENGTH and bytes(0, 2):string() == "WU" and bytes(2, 1):uint() == 1 and bytes(3, 1):uint() <= 1 and
    bytes(22, 2):uint() == bytes:len() - UD_LENGTH
end

function ud.dissector(bytes, pinfo, tree)
  if not is_ud(bytes) then return 0 end
  local source, destination, length = bytes(9, 3):uint(), bytes(5, 3):uint(), bytes(22, 2):uint()
  local words = string.format("%s, queue pair 0x%x to 0x%x, %u bytes", UD_OPCODES[bytes(3, 1):uint()], source, destination, length)
  pinfo.cols.protocol = "Weft UD"
  pinfo.cols.info = words
  local subtree = tree:add(ud, bytes(0, UD_LENGTH), "Weft datagram: " .. words)
  subtree:add(u.version, bytes(2, 1))
  subtree:add(u.opcode, bytes(3, 1))
  subtree:add(u.traffic_class, bytes(4, 1))
  subtree:add(u.destination, bytes(5, 3))
  subtree:add(u.hop_limit, bytes(8, 1))
  subtree:add(u.source, bytes(9, 3))
  subtree:add(u.qkey, bytes(12, 4))
  if bytes(3, 1):uint() == 1 then subtree:add(u.immediate, bytes(16, 4)) end
  subtree:add(u.solicited, bytes(20, 2))
  subtree:add(u.length, bytes(22, 2))
  if length > 0 then Dissector.get("data"):call(bytes(UD_LENGTH):tvb(), pinfo, tree) end
  return bytes:len()
end
ud:register_heuristic("udp", function(bytes, pinfo, tree) return is_ud(bytes) and ud.dissector(bytes, pinfo, tree) > 0 end)
DissectorTable.get("udp.port"):add(GROUP_PORT, ud)

local SIDR_LENGTH = 22
local SIDR_TYPES = {[1] = "Request", [2] = "Reply", [3] = "Pending"}
local SIDR_STATUS = {[0] = "accepted", [2] = "rejected"}
local sidr = Proto("weft_sidr", "Weft look-up of a UD queue pair")
local s = {
  version = ProtoField.uint8("weft_sidr.version", "Version", base.DEC),
  type = ProtoField.uint8("weft_sidr.type", "Type", base.DEC, SIDR_TYPES),
  transaction = ProtoField.uint64("weft_sidr.transaction", "Transaction", base.HEX),
  status = ProtoField.uint8("weft_sidr.status", "Status", base.DEC, SIDR_STATUS),
  number = ProtoField.uint24("weft_sidr.qp", "Queue pair", base.HEX),
  qkey = ProtoField.uint32("weft_sidr.qkey", "Q_Key", base.HEX),
  private = ProtoField.bytes("weft_sidr.private_data", "Private data"),
}
sidr.fields = {s.version, s.type, s.transaction, s.status, s.number, s.qkey, s.private}

local function is_sidr(bytes)
  return bytes:len() >= SIDR_LENGTH and bytes(0, 2):string() == "WS" and bytes(2, 1):uint() == 1 and
    SIDR_TYPES[bytes(3, 1):uint()] ~= nil and bytes(20, 2):uint() == bytes:len() - SIDR_LENGTH
end

function sidr.dissector(bytes, pinfo, tree)
  local kind, private = bytes(3, 1):uint(), bytes(20, 2):uint()
  local words = SIDR_TYPES[kind]
  if kind == 2 then
    words = words .. string.format(": %s, queue pair 0x%x", SIDR_STATUS[bytes(12, 1):uint()] or "refused", bytes(13, 3):uint())
  end
  pinfo.cols.protocol = "Weft SIDR"
  pinfo.cols.info = words
  local subtree = tree:add(sidr, bytes(), "Weft look-up of a UD queue pair: " .. words)
  subtree:add(s.version, bytes(2, 1))
  subtree:add(s.type, bytes(3, 1))
  subtree:add(s.transaction, bytes(4, 8))
  if kind == 2 then
    subtree:add(s.status, bytes(12, 1))
    subtree:add(s.number, bytes(13, 3))
    subtree:add(s.qkey, bytes(16, 4))
  end
  if private > 0 then subtree:add(s.private, bytes(SIDR_LENGTH, private)) end
  return bytes:len()
end
sidr:register_heuristic("udp", function(bytes, pinfo, tree) return is_sidr(bytes) and sidr.dissector(bytes, pinfo, tree) > 0 end)

-- --- SCTP in UDP (RFC 6951) at ports that only the processes know, and how they ask for them (wires/sctp/locator/message.h) ---

local PORT_TYPES = {[1] = "Question", [2] = "Answer"}
local locator = Proto("weft_sctp_port", "Weft look-up of the UDP port of SCTP")
local l = {
  type = ProtoField.uint8("weft_sctp_port.type", "Type", base.DEC, PORT_TYPES),
  transaction = ProtoField.uint64("weft_sctp_port.transaction", "Transaction", base.HEX),
  sctp = ProtoField.uint16("weft_sctp_port.sctp", "SCTP port", base.DEC),
  udp = ProtoField.uint16("weft_sctp_port.udp", "UDP port", base.DEC),
}
locator.fields = {l.type, l.transaction, l.sctp, l.udp}

local function is_locator(bytes)
  return bytes:len() == 16 and bytes(0, 2):string() == "WP" and bytes(2, 1):uint() == 1 and PORT_TYPES[bytes(3, 1):uint()] ~= nil
end

function locator.dissector(bytes, pinfo, tree)
  local kind = bytes(3, 1):uint()
  local words = string.format("%s: SCTP port %d", PORT_TYPES[kind], bytes(12, 2):uint())
  if kind == 2 then words = words .. string.format(" is at UDP port %d", bytes(14, 2):uint()) end
  pinfo.cols.protocol = "Weft SCTP port"
  pinfo.cols.info = words
  local subtree = tree:add(locator, bytes(), "Weft look-up of the UDP port of SCTP: " .. words)
  subtree:add(l.type, bytes(3, 1))
  subtree:add(l.transaction, bytes(4, 8))
  subtree:add(l.sctp, bytes(12, 2))
  if kind == 2 then subtree:add(l.udp, bytes(14, 2)) end
  return bytes:len()
end
locator:register_heuristic("udp", function(bytes, pinfo, tree) return is_locator(bytes) and locator.dissector(bytes, pinfo, tree) > 0 end)

-- A common header and chunks that fill the datagram to its end, of the types of RFC 9260.
local function is_sctp(bytes)
  local length = bytes:len()
  if length < 16 or length % 4 ~= 0 or bytes(0, 2):uint() == 0 or bytes(2, 2):uint() == 0 then return false end
  if (bytes(4, 4):uint() == 0) ~= (bytes(12, 1):uint() == 1) then return false end  -- no verification tag: an INIT
  local at = 12
  while at + 4 <= length do
    local kind, size = bytes(at, 1):uint(), bytes(at + 2, 2):uint()
    if kind > 14 or size < 4 then return false end
    at = at + math.floor((size + 3) / 4) * 4
  end
  return at == length
end
local in_udp = Proto("weft_sctp_in_udp", "SCTP in UDP, at any port")
local sctp = Dissector.get("sctp")
in_udp:register_heuristic("udp", function(bytes, pinfo, tree)
  if not is_sctp(bytes) then return false end
  sctp:call(bytes, pinfo, tree)
  return true
end)
