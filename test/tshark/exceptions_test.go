package tshark

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// exception is a difference that is known and understood: tshark is wrong, or
// says less. docs/tshark.md has a paragraph on each under the same name. Where
// it can be told what tshark shows instead, the exception demands exactly
// that.
type exception struct {
	id      string
	applies func(p *point) bool
}

var exceptions = []exception{
	// The bits of RFC 8276 do not fit into the eight that are shown.
	{"access-bits", func(p *point) bool {
		switch p.field {
		case "nfs.access_check", "nfs.access_supported", "nfs.access_rights":
		default:
			return false
		}
		return slices.EqualFunc(p.ours, p.theirs, func(a, b string) bool { return value(a)&0xff == value(b) })
	}},
	// Names are taken for ASCII.
	{"non-ascii-name", func(p *point) bool {
		if fieldByName[p.field].kind != text || len(p.ours) != len(p.theirs) {
			return false
		}
		for i := range p.ours {
			if p.ours[i] != p.theirs[i] && !mangled(p.ours[i], p.theirs[i]) {
				return false
			}
		}
		return true
	}},
	// The call is dated when its last Read Response arrives.
	{"write-clock", func(p *point) bool {
		if len(p.messages) != 1 || len(p.theirs) != 1 {
			return false
		}
		tx := p.messages[0].tx
		if tx.readChunks == 0 && !tx.longCall {
			return false
		}
		return lateClock(p, tx.lastRead.Number)
	}},
	// Results in a Write chunk whose Writes are lost or late, cut, or on an
	// unknown connection, are not put back into the reply.
	{"lost-write-chunk", func(p *point) bool {
		if len(p.theirs) != 0 || len(p.messages) == 0 {
			return false
		}
		switch p.field {
		case "nfs.data", "nfs.readlink.data", "nfs.symlink.linktext":
		default:
			return false
		}
		return !slices.ContainsFunc(p.messages, func(m *message) bool {
			return !m.reply || m.tx.writes == 0 || m.tx.retransmits == 0 && !m.tx.cut && p.d.ours.taps < 2 && !unconnected(p.d, m)
		})
	}},
	// With a keytab: some Wrap tokens that travel in chunks end in "Malformed
	// Packet", or no key fits them, where the checksum over all of the message is
	// right.
	{"wrap-in-chunks", func(p *point) bool {
		return p.row != nil && (p.row.malformed || len(p.row.values["nfs.opcode"]) == 0) && len(p.messages) > 0 && len(p.theirs) < len(p.ours) &&
			slices.Equal(p.theirs, p.ours[:len(p.theirs)]) &&
			slices.ContainsFunc(p.messages, func(m *message) bool { return m.tx.credentials == "privacy" && m.decrypted })
	}},
	// After a message that seems malformed the dissection of the packet ends.
	{"malformed", func(p *point) bool {
		return p.row != nil && p.row.malformed && p.field == "infiniband.invariant.crc" && len(p.theirs) == 0
	}},
	// Of a packet that the capture cut, headers are left out that are there.
	{"cut", func(p *point) bool {
		return len(p.theirs) == 0 && p.d.ours.frames[p.frame].cut
	}},
	// … and so are messages of which a packet was cut.
	{"cut-message", func(p *point) bool {
		if len(p.theirs) != 0 || len(p.messages) != 1 || p.field != "rpc.xid" && p.field != "rpcordma.xid" {
			return false
		}
		m := p.messages[0]
		for n := m.first; n <= m.last; n++ {
			if f := p.d.ours.frames[n]; f.cut && f.src == m.from {
				return true
			}
		}
		return false
	}},
	// A privileged port of a client is taken for that of another protocol.
	{"privileged-port", func(p *point) bool {
		if len(p.theirs) != 0 || len(p.messages) != 1 || p.field != "rpc.xid" {
			return false
		}
		c := p.messages[0].tx.connection
		return c.Fabric == rdma.TCP && min(c.Ends[0].Port, c.Ends[1].Port) < 1024 && c.Ends[0].Port != 111 && c.Ends[1].Port != 111
	}},
	// Of two captures merged, with clocks that differ, every packet is there
	// twice.
	{"two-taps", func(p *point) bool {
		if p.d.ours.taps < 2 || len(p.messages) == 0 || len(p.theirs) == 0 {
			return false
		}
		switch p.field {
		case requestFrame:
			n := value(p.theirs[0])
			return n < p.frame && n >= p.messages[0].tx.first.Number
		case responseTime:
			from := p.row.values[requestFrame]
			return len(from) > 0 && lateClock(p, value(from[0]))
		case "nfs.data":
			return len(p.theirs) == 1 && strings.Contains(p.theirs[0], " bytes ")
		}
		return false
	}},
	// What is sent again is shown again, each copy with its own time.
	{"copies", func(p *point) bool {
		if len(p.messages) == 0 || slices.ContainsFunc(p.messages, func(m *message) bool { return m.tx.retransmits == 0 }) {
			return false
		}
		from := p.row.values[requestFrame]
		return p.field == responseTime && len(from) > 0 && lateClock(p, value(from[0]))
	}},
	// A Read Response that is lost or late leaves a hole, and what follows it
	// is taken for what was in the hole.
	{"lost-read-response", func(p *point) bool {
		if len(p.messages) != 1 || p.messages[0].tx.retransmits == 0 || p.messages[0].tx.readChunks == 0 {
			return false
		}
		tx := p.messages[0].tx
		switch p.field {
		case "nfs.data":
			return len(p.theirs) == 1 && strings.Contains(p.theirs[0], " bytes ")
		case requestFrame: // of a Read Response that is not the last
			n := value(p.theirs[0])
			return n > tx.call.Number && n < tx.lastRead.Number
		case "nfs.opcode":
			return len(p.theirs) < len(p.ours) && slices.Equal(p.ours[:len(p.theirs)], p.theirs)
		}
		return false
	}},
	// A Reply chunk whose Writes are lost or late is not put together.
	{"lost-reply-chunk", func(p *point) bool {
		return len(p.theirs) == 0 && p.field == "rpc.xid" && len(p.messages) == 1 &&
			p.messages[0].tx.longReply && p.messages[0].tx.retransmits > 0
	}},
	// The second pass forgets Sends of several FPDUs.
	{"iwarp-second-pass", func(p *point) bool {
		return len(p.theirs) == 0 && len(p.messages) == 1 && (p.field == "rpc.xid" || p.field == "rpcordma.xid") &&
			p.messages[0].tx.fabric == rdma.IWARP && p.messages[0].packets > 1
	}},
	// Without the handshake of MPA, nothing is taken for iWARP.
	{"iwarp-midstream", func(p *point) bool {
		return len(p.theirs) == 0 && len(p.messages) == 1 &&
			p.messages[0].tx.fabric == rdma.IWARP && !p.messages[0].tx.connection.Setup[0].Seen()
	}},
	// Without the exchange of connection management, calls and replies are not
	// brought together.
	{"no-connection", func(p *point) bool {
		if len(p.messages) == 0 || slices.ContainsFunc(p.messages, func(m *message) bool { return !m.reply || !unconnected(p.d, m) }) {
			return false
		}
		switch p.field {
		case "rpc.program", "rpc.programversion", "rpc.procedure":
			return !slices.ContainsFunc(p.theirs, func(v string) bool { return v != "0" })
		case requestFrame, responseTime:
			return len(p.theirs) == 0
		}
		return len(p.theirs) == 0 && !strings.HasPrefix(p.field, "rpc")
	}},
	// … nor are the chunks that hold a message.
	{"no-connection-chunks", func(p *point) bool {
		return len(p.theirs) == 0 && p.field == "rpc.xid" && len(p.messages) == 1 && unconnected(p.d, p.messages[0]) &&
			(p.messages[0].tx.longCall || p.messages[0].tx.readChunks > 0 || p.messages[0].tx.longReply)
	}},
}

func value(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}

// lateClock reports whether p is about the time of a call, and tshark has that
// of the given packet.
func lateClock(p *point, frame uint64) bool {
	switch p.field {
	case requestFrame:
		return value(p.theirs[0]) == frame
	case responseTime:
		from, to := p.d.ours.frames[frame], p.d.ours.frames[p.frame]
		return from != nil && slices.Equal(distinct(p.theirs), []string{nanoseconds(to.time - from.time)})
	}
	return false
}

var trailingEscapes = regexp.MustCompile(`(\\x[0-9a-f]{2})+$`)

// mangled reports whether shown is name with its bytes beyond ASCII replaced,
// and perhaps cut short.
func mangled(name, shown string) bool {
	var b strings.Builder
	ascii := true
	for _, c := range []byte(name) {
		if c < 0x80 {
			b.WriteByte(c)
		} else {
			b.WriteRune('\uFFFD')
			ascii = false
		}
	}
	shown = trailingEscapes.ReplaceAllString(shown, "")
	return !ascii && shown != "" && strings.HasPrefix(b.String(), shown)
}

// unconnected reports whether tshark does not know the connection of m, since
// the capture lacks its REQ or REP, or holds only a part of it.
func unconnected(d *diff, m *message) bool {
	c := m.tx.connection
	if c.Fabric != rdma.RoCEv2 && c.Fabric != rdma.RoCEv1 && c.Fabric != rdma.InfiniBand {
		return false
	}
	for _, s := range c.Setup {
		if !s.Seen() || d.ours.frames[s.Frame.Number] == nil || d.ours.frames[s.Frame.Number].cut {
			return true
		}
	}
	return false
}
