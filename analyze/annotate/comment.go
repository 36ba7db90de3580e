package annotate

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/analyze/ladder"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// append appends the comment.
func (m *mark) append(b []byte) []byte {
	x, p := m.of, &m.packet
	b = append(b, x.name...)
	b = fmt.Appendf(b, " xid 0x%08x: ", x.xid)
	b = m.role(b)
	if p.Again {
		b = append(b, ", seen again"...)
	}
	if !x.ended {
		return append(b, "; not ended within the window"...)
	}
	if !x.time.Known {
		b = append(b, "; "...)
		return append(b, x.state.String()...)
	}
	switch p.Role {
	case transaction.CallPart, transaction.ReplyPart:
		b = append(b, "; "...)
		b = append(b, x.status...)
		b = append(b, " in "...)
		b = units.AppendDuration(b, x.time.Total)
		for i := range transaction.Parts() {
			if d := x.time.Durations[i]; d > 0 {
				b = append(b, ", "...)
				b = append(b, i.String()...)
				b = append(b, ' ')
				b = units.AppendDuration(b, d)
			}
		}
		if x.retransmit > 0 {
			b = fmt.Appendf(b, ", %s seen again", units.Plural(x.retransmit, "packet"))
		}
	default:
		phase := x.time.Of(p.Ref)
		if phase == ladder.After {
			b = append(b, "; after the reply"...)
		} else {
			b = append(b, "; "...)
			b = append(b, phase.String()...)
			b = append(b, " phase "...)
			b = units.AppendDuration(b, x.time.Durations[phase])
		}
		b = append(b, ", +"...)
		b = units.AppendDuration(b, time.Duration(p.Ref.Time-x.time.Start))
	}
	return b
}

// role says what the packet is.
func (m *mark) role(b []byte) []byte {
	x, p := m.of, &m.packet
	switch p.Role {
	case transaction.CallPart:
		return m.message(append(b, "call"...), x.callBytes)
	case transaction.ReplyPart:
		return m.message(append(b, "reply"...), x.replyBytes)
	case transaction.DonePart:
		return append(b, "RDMA_DONE"...)
	case transaction.ReadRequest:
		b = append(b, "RDMA Read Request "...)
		return m.operation(b, " of ")
	case transaction.ReadResponse:
		b = append(b, "RDMA Read Response "...)
		b = m.operation(b, " of ")
		return fmt.Appendf(b, ", %d bytes", p.Bytes)
	case transaction.WriteData:
		b = append(b, "RDMA Write "...)
		b = m.operation(b, " to ")
		return fmt.Appendf(b, ", %d bytes", p.Bytes)
	case transaction.Ack:
		b = append(b, "ACK of "...)
		return append(b, ladder.Acked(p)...)
	case transaction.Nak:
		if p.Beside {
			if p.RNR {
				return append(b, "RNR NAK on the connection meanwhile"...)
			}
			return append(b, "NAK on the connection meanwhile"...)
		}
		return append(b, ladder.NAK(p)...)
	}
	return append(b, "congestion notification on the connection meanwhile"...)
}

// message appends how much of a call or reply the packet carries.
func (m *mark) message(b []byte, total int) []byte {
	if m.packet.Bytes == 0 {
		return b
	}
	if m.of.ended && total != int(m.packet.Bytes) {
		return fmt.Appendf(b, ", %d of %d bytes", m.packet.Bytes, total)
	}
	return fmt.Appendf(b, ", %d bytes", m.packet.Bytes)
}

// operation appends "3 of 56 to Write chunk 0".
func (m *mark) operation(b []byte, link string) []byte {
	b = strconv.AppendInt(b, int64(m.packet.Operation), 10)
	if m.of.ended {
		b = append(b, " of "...)
		b = strconv.AppendInt(b, int64(m.of.operations), 10)
	}
	if m.chunk != "" {
		b = append(b, link...)
		b = append(b, m.chunk...)
	}
	return b
}
