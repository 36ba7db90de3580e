-- Fields for the transactions that "rpcrdma-dump annotate" and "rpcrdma-dump extcap" name in comments
-- of packets, for columns, filters and statistics of Wireshark and tshark:
--
--   tshark -X lua_script:transactions.lua -r annotated.pcapng -Y 'rpcrdma_tx.latency > 0.01'
--
-- Each packet of a transaction has the values of the whole transaction, from its first packet on.

local tx = Proto("rpcrdma_tx", "RPC-over-RDMA transaction")
local phases = { "call_transfer", "argument_pull", "server", "result_push", "reply_transfer" }

local f = {
    name = ProtoField.string("rpcrdma_tx.name", "Name", base.UNICODE, "Program, operation, file and range"),
    xid = ProtoField.uint32("rpcrdma_tx.xid", "XID", base.HEX),
    role = ProtoField.string("rpcrdma_tx.role", "Role of this packet"),
    status = ProtoField.string("rpcrdma_tx.status", "Status"),
    latency = ProtoField.double("rpcrdma_tx.latency", "Latency (s)"),
    phase = ProtoField.string("rpcrdma_tx.phase", "Phase of this packet"),
    offset = ProtoField.double("rpcrdma_tx.offset", "Time since the call (s)"),
    again = ProtoField.bool("rpcrdma_tx.again", "Seen again"),
}
for _, p in ipairs(phases) do
    f[p] = ProtoField.double("rpcrdma_tx.phase." .. p, p .. " (s)")
end
local list = {}
for _, field in pairs(f) do list[#list + 1] = field end
tx.fields = list

local comment = Field.new("frame.comment")
local units = { ns = 1e-9, ["µs"] = 1e-6, ms = 1e-3, s = 1 }

-- seconds reads a duration such as 13.06ms.
local function seconds(text)
    local n, unit = text:match("^(-?[%d.]+)(%D+)$")
    if n and units[unit] then return tonumber(n) * units[unit] end
end

-- What is known of transactions, by name and XID: the call and the reply have all of it.
local known = {}

function tx.init() known = {} end

-- learn reads the end of a comment on a call or a reply: "ok in 13.06ms, server 9.393ms, …".
local function learn(key, rest)
    local status, total, parts = rest:match("; (%S+) in (%-?[%d.]+[^,%s%d]+)(.*)$")
    if not status then return end
    local t = { status = status, latency = seconds(total) }
    for phase, duration in parts:gmatch(", ([%w_]+) (%-?[%d.]+[^,%s%d]+)") do t[phase] = seconds(duration) end
    known[key] = t
end

function tx.dissector(buffer, pinfo, tree)
    for _, c in ipairs({ comment() }) do
        -- The last " xid " is ours: one before it is part of a file's name.
        local name, xid, rest = c.value:match("^(.*) xid (0x%x+): (.*)$")
        if name then
            -- The name of an open transaction may differ from that of the same when it ended.
            local key = xid .. " " .. name
            learn(key, rest)
            local sub = tree:add(tx, buffer(0, 0), name .. " " .. xid)
            sub:add(f.name, name)
            sub:add(f.xid, tonumber(xid))
            sub:add(f.role, (rest:gsub(";.*$", "")))
            if rest:find(", seen again", 1, true) then sub:add(f.again, true) end
            local phase = rest:match("; ([%w_]+) phase ")
            if phase then sub:add(f.phase, phase) end
            local offset = rest:match(", %+(%-?[%d.]+[^,%s%d]+)$")
            if offset and seconds(offset) then sub:add(f.offset, seconds(offset)) end
            for field, value in pairs(known[key] or {}) do
                if f[field] then sub:add(f[field], value) end
            end
        end
    end
end

register_postdissector(tx)
