package check

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// misfits change one packet of a large transfer, in addition to oddities.
var misfits = map[string]func(s *scene, at int){
	"shorter":   func(s *scene, at int) { resize(s.edit(at), -4) },
	"half":      func(s *scene, at int) { resize(s.edit(at), -mtu/2) },
	"longer":    func(s *scene, at int) { resize(s.edit(at), 4) },
	"asking":    func(s *scene, at int) { s.edit(at).AckReq = true },
	"the end":   func(s *scene, at int) { s.edit(at).Opcode++ },
	"beginning": func(s *scene, at int) { s.edit(at).Opcode-- },
	"a little late": func(s *scene, at int) {
		for i := at; i < len(s.recs); i++ {
			s.recs[i].Time += idle + 1
		}
	},
	"stalled": func(s *scene, at int) {
		for i := at; i < len(s.recs); i++ {
			s.recs[i].Time += stall
		}
	},
	"from the other side": func(s *scene, at int) {
		p := s.edit(at)
		p.From, p.Src, p.Dst, p.DestQP = p.From.Other(), p.Dst, p.Src, s.qpn[p.From]
	},
	"gone back": func(s *scene, at int) {
		part := slices.Clone(s.recs[at-2 : at])
		s.recs = slices.Insert(s.recs, at, part...)
	},
	"a call between": func(s *scene, at int) {
		s.between(at, func() { s.send(client, message(s.next(), getattr(s.xid))) })
	},
	"set up late": func(s *scene, at int) { s.between(at, s.connect) },
	"answered": func(s *scene, at int) {
		asks := s.edit(at)
		asks.AckReq = true
		s.between(at+1, func() {
			p := s.packet(client, roce.RCAcknowledge)
			p.PSN, p.AETH = asks.PSN, roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: s.msn[server]}
			s.put(p)
		})
	},
}

// between has something come before a packet.
func (s *scene) between(at int, play func()) {
	rest := slices.Clone(s.recs[at:])
	s.recs = s.recs[:at]
	now := s.now
	s.now = rest[0].Time
	play()
	s.now = now
	s.recs = append(s.recs, rest...)
}

func resize(p *rocetest.Packet, by int) {
	n := max(len(p.Payload)+by, 0)
	p.Payload = append(slices.Clone(p.Payload), make([]byte, mtu)...)[:n]
	p.PayloadLen = n
}

// TestStretch: a packet that does not go on with a large transfer is judged as if none had been expected.
func TestStretch(t *testing.T) {
	const size = 8*mtu + 100
	changes := []map[string]func(s *scene, at int){oddities, misfits}
	for _, connect := range [...]bool{true, false} {
		for way, transfer := range [...]func(*scene){
			func(s *scene) { s.readData(size, nil) },
			func(s *scene) { s.writeData(size, nil) },
			func(s *scene) { s.readData(8*mtu, nil) },
			func(s *scene) { s.writeData(8*mtu, nil) },
		} {
			for _, list := range changes {
				for name, change := range list {
					for _, at := range [...]int{3, 4, 6, 10, 11} {
						t.Run(fmt.Sprintf("%d/%s/%d/%v", way, name, at, connect), func(t *testing.T) {
							s := newScene()
							if connect {
								s.connect()
							}
							s.small()
							place := len(s.recs) + at
							transfer(s)
							s.small()
							change(s, place)
							transfer(s)
							if connect {
								s.disconnect(client)
							}
							alike(t, s)
						})
					}
				}
			}
		}
	}
}

// TestStretchBeyond: of a Read of unknown path MTU, packets are expected as far as its responses reach, if they are as long as others are. The
// capture may end anywhere.
func TestStretchBeyond(t *testing.T) {
	for i := range 9 {
		size, lacks := mtu>>(i/3), i%3
		s := newScene()
		s.readData(8*mtu, nil) // the MTU is seen
		h := s.next()
		seg := s.segment(8 * mtu)
		h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
		s.send(client, message(h, write3(h.XID, 8*mtu)))
		p := s.request(server, roce.RCReadRequest, nil)
		p.RETH = roce.RETHFields{VA: seg.Offset, RKey: seg.Handle, DMALen: 8 * mtu}
		s.parts(client, roce.RCReadResponseFirst, p.PSN, size, lacks)
		alike(t, s)
	}
}

// parts sends the packets of 8 path MTUs, but for the last, in parts of a size.
func (s *scene) parts(from rdma.Side, first roce.Opcode, psn uint32, size, lacks int) {
	n := 8 * mtu / size
	for at := range n - lacks {
		op := first + 1
		switch at {
		case 0:
			op = first
		case n - 1:
			op = first + 2
		}
		q := s.packet(from, op)
		q.PSN, q.Payload = (psn+uint32(at))&psnMask, make([]byte, size)
		q.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: s.msn[from.Other()]}
		q.RETH.DMALen = 8 * mtu
		s.put(q)
	}
}

// TestStretchMTU: the path MTU may become known while a transfer is under way.
func TestStretchMTU(t *testing.T) {
	for at := range 16 {
		s := newScene()
		s.small()
		place := len(s.recs) + at
		s.parts(server, roce.RCWriteFirst, s.psn[server], mtu/2, 0)
		s.psn[server] += 16
		s.between(place, s.connect)
		s.small()
		alike(t, s)
	}
}

// TestStretchTaken: nearly all packets of large transfers are judged in this way, and that shows in no count.
func TestStretchTaken(t *testing.T) {
	s := newScene()
	s.connect()
	s.small()
	s.readData(40*mtu, nil)
	s.writeData(40*mtu, nil)
	var most uint64
	packets := s.frames()
	c, d := checked(Options{Rules: All()}, func(*Finding) {})
	for i := range packets {
		d.Batch(batchOf(packets[i : i+1]))
		if k := c.last; k != nil && k.stretch.on {
			most = max(most, k.stretch.packets)
		}
	}
	if most != 37 && most != 38 {
		t.Errorf("the longest stretch has %d packets", most)
	}
	alike(t, s)
}
