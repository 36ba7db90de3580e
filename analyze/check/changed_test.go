package check

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// real is perftest between two hosts with rxe, without losses: Sends, Writes and Reads, up to 16 under way. Packets
// of connections are cut behind their headers, so that their ICRCs are not checked.
const real = "../../test/fabric/testdata/rxe-perf-clean.pcap.zst"

// Where headers are in the frames of that capture.
const (
	atTOS = 15
	atIP  = 14
	atBTH = 42
)

// changed finds packets of the capture by opcode.
type changed struct {
	t       *testing.T
	packets []capture.Packet
}

// of are the packets with one of these opcodes, sent by the host with this last byte of its address; 0 for any.
func (c *changed) of(host byte, ops ...roce.Opcode) (out []*capture.Packet) {
	for i := range c.packets {
		p := &c.packets[i]
		if d := p.Data; len(d) > atBTH+roce.BTHSize && d[12] == 8 && d[23] == 17 && (host == 0 || d[29] == host) && slices.Contains(ops, roce.Opcode(d[atBTH])) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		c.t.Fatalf("no packet with opcode %v", ops)
	}
	return out
}

func bth(p *capture.Packet) roce.BTH { return roce.BTH(p.Data[atBTH : atBTH+roce.BTHSize]) }

func aeth(p *capture.Packet) roce.AETH { return roce.AETH(p.Data[atBTH+roce.BTHSize:]) }

// later moves a packet and all behind it.
func (c *changed) later(p *capture.Packet, ns int64) {
	for i := range c.packets {
		if c.packets[i].Number >= p.Number {
			c.packets[i].Time += ns
		}
	}
}

// resum makes the ICRC of a packet right again, unless it was cut.
func resum(p *capture.Packet) {
	d := p.Data
	if len(d) < atBTH+roce.BTHSize+4 || d[12] != 8 || d[23] != 17 || uint32(len(d)) < p.Length {
		return
	}
	end := len(d) - 4
	copy(d[atBTH:], new(roce.Checker).Append(link.UDP, d[atIP:34], d[34:atBTH], bytes.Clone(d[atBTH:end])))
}

// TestChangedCapture changes one thing in a real capture without NFS, which keeps all rules as it is.
func TestChangedCapture(t *testing.T) {
	whole := load(t, real)
	if r := run(Options{Rules: All()}, whole); len(r.findings) > 0 {
		t.Fatal(r.ids())
	} else {
		for _, id := range []string{"msn-wrong", "read-depth-exceeded", "ack-late", "ack-went-back", "dscp-changed", "message-stalled", "payload-over-mtu", "opcode-sequence", "rdma-length"} {
			if r.check.Count(Lookup(id)).Judged == 0 {
				t.Errorf("%s is not judged", id)
			}
		}
	}
	for rule, change := range map[string]func(c *changed){
		"dscp-changed": func(c *changed) { c.of(2, roce.RCSendFirst)[3].Data[atTOS] |= 26 << 2 },
		"ecn-without-cnp": func(c *changed) {
			for _, p := range c.of(2, roce.RCSendFirst)[2:5] {
				p.Data[atTOS] |= 3
			}
		},
		"priority-changed": func(c *changed) {
			for i, p := range c.of(2, roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly) {
				p.Data = slices.Insert(bytes.Clone(p.Data), 12, 0x81, 0x00, byte(3+i%2)<<5, 42)
				p.Length += 4
			}
		},
		"msn-wrong": func(c *changed) {
			h := aeth(c.of(1, roce.RCAcknowledge)[8])
			h.SetMSN(h.MSN() + 1)
		},
		"operation-refused": func(c *changed) {
			list := c.of(1, roce.RCAcknowledge)
			h := aeth(list[len(list)-1])
			h.SetSyndrome(roce.NAKRemoteAccess)
			h.SetMSN(h.MSN() - 1) // it was not completed
		},
		"send-without-credit": func(c *changed) {
			for _, p := range c.of(1, roce.RCAcknowledge) {
				aeth(p).SetSyndrome(0) // no credits
			}
		},
		"ack-went-back": func(c *changed) {
			list := c.of(1, roce.RCAcknowledge)
			for i := 8; i < len(list)-1; i++ { // one on the same connection as the next
				h, next := bth(list[i+1]), bth(list[i])
				if h.DestQP() == next.DestQP() && h.PSN() == next.PSN()+3 {
					h.SetPSN(next.PSN() - 3)
					aeth(list[i+1]).SetMSN(aeth(list[i]).MSN())
					return
				}
			}
			c.t.Fatal("no two acknowledgements in a row")
		},
		"ack-late": func(c *changed) {
			c.later(c.of(2, roce.RCAcknowledge)[0], 3e9) // of the first message of the server
		},
		"message-stalled": func(c *changed) { c.later(c.of(2, roce.RCSendMiddle)[4], 250e6) },
		"opcode-sequence": func(c *changed) { bth(c.of(2, roce.RCSendMiddle)[4]).SetOpcode(roce.RCSendFirst) },
		"rdma-length": func(c *changed) {
			p := c.of(2, roce.RCWriteFirst)[2]
			roce.RETH(p.Data[atBTH+roce.BTHSize:]).SetDMALen(3004)
		},
		"cnp-format": func(c *changed) {
			p := *c.of(1, roce.RCAcknowledge)[4]
			p.Data = slices.Concat(p.Data[:atBTH+roce.BTHSize], make([]byte, cnpReserved+4))
			p.Data[17], p.Data[39] = byte(len(p.Data)-atIP), byte(len(p.Data)-34)
			h := bth(&p)
			h.SetOpcode(roce.CNP)
			h.SetBECN(false) // and a PSN
			p.Length = uint32(len(p.Data))
			i := slices.IndexFunc(c.packets, func(q capture.Packet) bool { return q.Number == p.Number })
			c.packets = slices.Insert(c.packets, i, p)
		},
		"read-depth-exceeded": func(c *changed) {
			for _, p := range c.of(1, roce.UDSendOnly) {
				mad := p.Data[atBTH+roce.BTHSize+8:]
				if m := ibcm.MAD(mad); m.IsValid() && m.Attribute() == ibcm.AttributeREP {
					r := ibcm.REP(m.Data())
					r.SetResponderResources(1)
				}
			}
		},
	} {
		t.Run(rule, func(t *testing.T) {
			c := &changed{t: t, packets: slices.Clone(whole)}
			for i := range c.packets {
				c.packets[i].Data = bytes.Clone(c.packets[i].Data)
			}
			change(c)
			for i := range c.packets {
				resum(&c.packets[i])
			}
			r := run(Options{Rules: All()}, c.packets)
			got := slices.Compact(slices.Sorted(slices.Values(r.ids())))
			if !slices.Equal(got, []string{rule}) {
				t.Errorf("found %v", got)
				for i, f := range r.findings {
					if i < 4 {
						t.Log(describeFinding(f))
					}
				}
			}
		})
	}
}
