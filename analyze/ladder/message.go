package ladder

import (
	"fmt"
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// rowText describes the role of a row in its transaction.
func (d *Drawer) rowText(v *rpc.View, r *row) string {
	tx := v.Tx
	p := &tx.Packets[r.first]
	s := ""
	switch p.Role {
	case transaction.CallPart:
		s = d.sendText(v, r, &tx.Call, "call")
	case transaction.ReplyPart:
		s = d.sendText(v, r, &tx.Reply, "reply")
	case transaction.DonePart:
		s = "RDMA_DONE"
	case transaction.ReadRequest:
		s = "#" + strconv.Itoa(p.Operation)
		if o := d.operation(tx, p); o != nil {
			if r.segment != nil {
				s += fmt.Sprintf(" pulls %s+%s, %s", r.segment.appendName(nil), units.Size(o.Offset-r.segment.Offset), units.Size(uint64(o.Length)))
			} else {
				s += " pulls " + units.Size(uint64(o.Length))
			}
		}
	case transaction.WriteData, transaction.ReadResponse:
		s = "#" + strconv.Itoa(p.Operation)
		if r.segment != nil {
			s += fmt.Sprintf(" %s %s", r.segment.appendName(nil), units.Size(r.bytes))
			if !p.Again {
				s += fmt.Sprintf(", %s/%s", units.Size(r.done), units.Size(uint64(r.segment.Length)))
			}
		} else {
			s += " " + units.Size(r.bytes)
		}
		if r.packets > 1 {
			s += " " + took(tx, r)
		}
	case transaction.Ack:
		s = "ACK of " + Acked(p)
	case transaction.Nak:
		s = NAK(p)
	case transaction.Congestion:
		s = "congestion notification"
	}
	if r.ack > 0 {
		s += "; ACK of " + Acked(&tx.Packets[r.ack-1])
	}
	if p.Again {
		s += " AGAIN"
	}
	if p.Beside {
		s += " (on the connection)"
	}
	return s
}

// sendText names a packet of a call or reply.
func (d *Drawer) sendText(v *rpc.View, r *row, m *transaction.Message, what string) string {
	tx := v.Tx
	if what == "call" && tx.Named {
		what += " " + string(text.Operations(nil, v))
	} else if what == "reply" {
		if status := text.ShortStatus(v); status != "" {
			what += " " + status
		}
	}
	if m.Transport && m.Header.Type != rpcrdma.TypeMsg && m.Header.Type.String() != "" {
		what += " " + m.Header.Type.String()
	}
	if r.bytes > 0 {
		what += fmt.Sprintf(", %d bytes", r.bytes)
	}
	if int(r.bytes) < m.SendBytes && r.bytes > 0 {
		what += fmt.Sprintf(" of %d", m.SendBytes)
	}
	if r.packets > 1 {
		what += " in " + took(tx, r)
	}
	return what
}

// Acked describes what a packet acknowledges: "the call", "#3", "4 operations to #7, the reply".
func Acked(p *transaction.Packet) string {
	s := ""
	add := func(x string) {
		if s != "" {
			s += ", "
		}
		s += x
	}
	if p.AcksCall {
		add("the call")
	}
	switch {
	case p.Acked == 1:
		add("#" + strconv.Itoa(p.Operation))
	case p.Acked > 1:
		add(fmt.Sprintf("%d operations to #%d", p.Acked, p.Operation))
	}
	if p.AcksReply {
		add("the reply")
	}
	return s
}

// NAK describes what a packet refuses.
func NAK(p *transaction.Packet) string {
	s := "NAK"
	if p.RNR {
		s = "RNR NAK"
	}
	if name := Syndrome(p); name != "" {
		s = name
	}
	if p.Header.Kind == rdma.HeaderBTH {
		s += fmt.Sprintf(": wants PSN %d", p.Header.PSN)
	}
	switch a := Acked(p); {
	case a != "":
		s += ", has " + a
	case p.Operation > 0:
		s += ", of #" + strconv.Itoa(p.Operation)
	}
	return s
}

// lists writes the chunk lists of a message beside it, between and to the right of the rails.
func (d *Drawer) lists(b []byte, reply bool) []byte {
	shown := 0
	limit := 8
	if d.Verbose {
		limit = maxSegments
	}
	total := 0
	for i := range d.segments.all {
		x := &d.segments.all[i]
		if d.beside(x, reply) {
			total++
		}
	}
	for i := range d.segments.all {
		x := &d.segments.all[i]
		if !d.beside(x, reply) {
			continue
		}
		if shown++; shown > limit {
			b = d.note(b, fmt.Sprintf("%s %d more segments (-v shows all)", d.glyphs().ellipsis, total-limit))
			break
		}
		if reply && x.list != 'S' {
			b = d.note(b, fmt.Sprintf("%s used %d of %d", x.appendName(nil), x.used, x.Length))
			continue
		}
		b = d.note(b, fmt.Sprintf("%-6s handle 0x%08x, %d at 0x%016x%s", x.appendName(nil), x.Handle, x.Length, x.Offset, position(x)))
	}
	return b
}

// beside reports whether a segment is drawn beside the call or the reply.
func (d *Drawer) beside(x *segment, reply bool) bool {
	if reply {
		return x.list == 'S' || x.hasUsed && x.used != uint64(x.Length)
	}
	return x.list != 'S'
}

// position is the position of a Read chunk in the call.
func position(x *segment) string {
	if x.list != 'R' || x.index != 0 {
		return ""
	}
	return fmt.Sprintf(", pos %d", x.position)
}

// note writes a line in place of an arrow.
func (d *Drawer) note(b []byte, s string) []byte {
	b = append(b, d.margin("", "", "")...)
	b = append(b, d.glyphs().rail...)
	b = append(b, "  "...)
	b = append(b, d.paint(text.ColorDim, s)...)
	return append(b, '\n')
}
