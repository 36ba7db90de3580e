package ladder

import (
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Opcode is the opcode of a packet as the fabric's specification names it; empty if unknown.
func Opcode(p *transaction.Packet) string {
	h := &p.Header
	switch h.Kind {
	case rdma.HeaderBTH:
		return strings.TrimPrefix(roce.Opcode(h.Opcode).String(), "RC ")
	case rdma.HeaderDDP:
		return iwarp.Opcode(h.Opcode).String()
	case rdma.HeaderTCP:
		return "TCP"
	case rdma.HeaderUDP:
		return "UDP"
	}
	return ""
}

// Syndrome is the meaning of an AETH; empty if the packet has none.
func Syndrome(p *transaction.Packet) string {
	if !p.Header.HasAETH {
		return ""
	}
	return roce.Syndrome(p.Header.Syndrome).String()
}

var shorter = strings.NewReplacer(
	"RDMA Read Response", "Response", "RDMA ", "", " Invalidate", "+inv", " Immediate", "+imm",
	" with Solicited Event and Invalidate", "+se+inv", " with Solicited Event", "+se", " with Invalidate", "+inv",
)

// label is the text on the arrow of one packet.
func label(p *transaction.Packet) string {
	h := &p.Header
	switch h.Kind {
	case rdma.HeaderBTH:
		name := shorter.Replace(Opcode(p))
		if p.Role == transaction.Ack && h.Opcode&0x1f == uint8(roce.RCAcknowledge) {
			name = "ACK"
		} else if p.Role == transaction.Nak {
			name = "NAK"
			if p.RNR {
				name = "RNR NAK"
			}
		}
		return name + " " + strconv.FormatUint(uint64(h.PSN), 10)
	case rdma.HeaderDDP:
		s := shorter.Replace(Opcode(p))
		if !iwarp.Opcode(h.Opcode).Tagged() && h.MSN != 0 {
			s += " MSN " + strconv.FormatUint(uint64(h.MSN), 10)
		}
		if h.Last && iwarp.Opcode(h.Opcode).Tagged() {
			s += ", last"
		}
		return s
	case rdma.HeaderTCP:
		if p.Role == transaction.Ack {
			return "TCP ACK"
		}
		return "TCP"
	case rdma.HeaderUDP:
		return "UDP"
	}
	switch p.Role {
	case transaction.Nak:
		if p.RNR {
			return "RNR NAK"
		}
		return "NAK"
	case transaction.Congestion:
		return "CNP"
	}
	return p.Role.String()
}

// kindName is the common name for the packets of an operation or message.
func kindName(p *transaction.Packet) string {
	switch p.Role {
	case transaction.WriteData:
		return "Write"
	case transaction.ReadResponse:
		return "Response"
	case transaction.ReadRequest:
		return "Read Request"
	case transaction.CallPart, transaction.ReplyPart:
		if p.Header.Kind == rdma.HeaderTCP || p.Header.Kind == rdma.HeaderUDP {
			return "TCP"
		}
		return "Send"
	}
	if p.Role == transaction.Ack {
		return "TCP ACK"
	}
	return p.Role.String()
}

// runLabel is the text on the arrow of several packets: "Write ×19/20" if one of 20 PSNs is missing.
func runLabel(first, last *transaction.Packet, n int, times string) string {
	s := kindName(first) + " " + times + strconv.Itoa(n)
	if first.Header.Kind == rdma.HeaderBTH {
		// Some may be missing from the capture or arrive later.
		if of := int((last.Header.PSN-first.Header.PSN)&0xffffff) + 1; of > n && of < 1<<16 {
			s += "/" + strconv.Itoa(of)
		}
		s += " " + span(uint64(first.Header.PSN), uint64(last.Header.PSN))
	}
	return s
}

// span is "1719-38": the second number has only the digits that differ.
func span(first, last uint64) string {
	a := strconv.FormatUint(first, 10)
	if first == last {
		return a
	}
	b := strconv.FormatUint(last, 10)
	if len(a) == len(b) {
		i := 0
		for i < len(a) && a[i] == b[i] {
			i++
		}
		b = b[i:]
	}
	return a + "-" + b
}
