package check

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/tcp"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// stream is a TCP connection that a test writes segment by segment.
type stream struct {
	packets []capture.Packet
	now     int64
	port    [2]uint16
	seq     [2]uint32
	msn     [2]uint32
	tap     uint16
	xid     uint32
}

func newStream() *stream {
	return &stream{now: 1_800_000_000_000_000_000, port: [2]uint16{40000, portNFS}, seq: [2]uint32{1000, 0xfffffff0}, xid: 0x6000}
}

// raw is a segment as the test wants it.
func (s *stream) raw(from rdma.Side, flags byte, seq, ack uint32, payload []byte) {
	a, b := addr[from].As4(), addr[from.Other()].As4()
	p := make([]byte, 12, 100)
	p = append(p, 0x08, 0x00, 0x45, 0)
	p = binary.BigEndian.AppendUint16(p, uint16(40+len(payload)))
	p = append(p, 0, 0, 0, 0, 64, 6, 0, 0)
	p = append(append(p, a[:]...), b[:]...)
	p = binary.BigEndian.AppendUint16(p, s.port[from])
	p = binary.BigEndian.AppendUint16(p, s.port[from.Other()])
	p = binary.BigEndian.AppendUint32(p, seq)
	p = binary.BigEndian.AppendUint32(p, ack)
	p = append(p, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
	p = append(p, payload...)
	s.now += 5000
	s.packets = append(s.packets, capture.Packet{
		Time: s.now, Number: uint64(len(s.packets) + 1), Data: p, Length: uint32(len(p)), Link: capture.LinkEthernet, Tap: s.tap,
	})
}

// segment is the next one of a side.
func (s *stream) segment(from rdma.Side, flags byte, payload []byte) {
	s.raw(from, flags|flagACK, s.seq[from], s.seq[from.Other()], payload)
	s.seq[from] += uint32(len(payload))
	if flags&(tcp.SYN|tcp.FIN) != 0 {
		s.seq[from]++
	}
}

func (s *stream) syn() {
	s.raw(client, tcp.SYN, s.seq[client], 0, nil)
	s.seq[client]++
}

// refused is an attempt that nobody takes.
func (s *stream) refused() {
	s.port[client]++
	s.seq[client] += 1e6
	s.syn()
	s.raw(server, tcp.RST|flagACK, 0, s.seq[client], nil)
}

// open makes an iWARP connection.
func (s *stream) open() {
	s.port[client]++
	s.msn = [2]uint32{}
	s.syn()
	s.segment(server, tcp.SYN, nil)
	s.segment(client, 0, (&iwarp.MPAFrame{Revision: 1, Private: private(4096, 4096, false)}).Append(nil))
	s.segment(server, 0, (&iwarp.MPAFrame{Revision: 1, Reply: true, Private: private(4096, 4096, false)}).Append(nil))
}

// send is a Send in one FPDU.
func (s *stream) send(from rdma.Side, data []byte) {
	s.msn[from]++
	u := iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpSend, true), 0, s.msn[from], 0)
	s.segment(from, 0, iwarp.AppendFPDU(nil, append(u, data...), false))
}

func (s *stream) small() {
	n := newScene()
	n.xid = s.xid
	h := n.next()
	s.xid = n.xid
	s.send(client, message(h, getattr(h.XID)))
	s.send(server, message(answer(h), failed(h.XID)))
	s.segment(client, 0, nil)
}

func (s *stream) close(from rdma.Side) {
	s.segment(from, tcp.FIN, nil)
	s.segment(from.Other(), tcp.FIN, nil)
	s.segment(from, 0, nil)
}

func (s *stream) run() result { return run(Options{Rules: All()}, s.packets) }

// Who has ended an iWARP connection.
func TestStreamEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		play func(*stream)
		want string
	}{
		{"client", func(s *stream) { s.close(client) }, ""},
		{"client resets", func(s *stream) { s.segment(client, tcp.RST, nil) }, ""},
		{"server", func(s *stream) { s.close(server) }, "frame 8, TCP FIN from 192.0.2.1"},
		{"server resets", func(s *stream) { s.segment(server, tcp.RST, nil) }, "frame 8, TCP reset from 192.0.2.1"},
		{"client, then server resets", func(s *stream) { s.segment(client, tcp.FIN, nil); s.segment(server, tcp.RST, nil) }, ""},
		{"nobody", func(*stream) {}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStream()
			s.open()
			s.small()
			test.play(s)
			r := s.run()
			got := ""
			for _, f := range r.findings {
				if f.Rule.ID != "closed-by-responder" || f.By != Responder || f.From.Addr != addr[server] {
					t.Errorf("%s", describeFinding(f))
				}
				got += fmt.Sprintf("frame %d, %s", f.Ref.Number, f.Seen)
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if n := r.check.Count(Lookup("small-inline-threshold")); n.Judged != 1 {
				t.Errorf("the connection was not recognised")
			}
		})
	}
}

// Attempts to connect that are refused.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		play func(*stream)
		want string // frames of the findings
	}{
		{"refused", (*stream).refused, "2"},
		{"thrice", func(s *stream) { s.refused(); s.refused(); s.refused() }, "2 4 6"},
		{"SYN twice", func(s *stream) {
			s.syn()
			s.raw(client, tcp.SYN, s.seq[client]-1, 0, nil)
			s.raw(server, tcp.RST|flagACK, 0, s.seq[client], nil)
			s.raw(server, tcp.RST|flagACK, 0, s.seq[client], nil)
		}, "3"},
		{"two capture points, one after the other", func(s *stream) {
			for s.tap = range 2 {
				s.raw(client, tcp.SYN, 5000, 0, nil)
				s.raw(server, tcp.RST|flagACK, 0, 5001, nil)
			}
		}, "2"},
		// Both have the same addresses, ports and sequence numbers.
		{"two tenants", func(s *stream) {
			s.raw(client, tcp.SYN, 5000, 0, nil)
			s.raw(server, tcp.RST|flagACK, 0, 5001, nil)
			bare := s.packets
			s.packets = nil
			for i := range uint32(2) {
				w := wrap.New(wrap.Kinds(100 + i)[0], 100+i)
				for _, p := range bare {
					b, n := w.Frame(p.Data, len(p.Data))
					p.Data, p.Length, p.Time, p.Number = bytes.Clone(b), uint32(n), p.Time+int64(i)*1e9, p.Number+2*uint64(i)
					s.packets = append(s.packets, p)
				}
			}
		}, "2 4"},
		{"with data", func(s *stream) {
			s.raw(client, tcp.SYN, 5000, 0, []byte("cookie"))
			s.raw(server, tcp.RST|flagACK, 0, 5007, nil)
		}, "2"},
		{"sequence numbers wrap", func(s *stream) {
			s.raw(client, tcp.SYN, 0xffffffff, 0, nil)
			s.raw(server, tcp.RST|flagACK, 0, 0, nil)
		}, "2"},
		{"accepted, then reset", func(s *stream) {
			s.syn()
			s.segment(server, tcp.SYN, nil)
			s.raw(server, tcp.RST|flagACK, 0, s.seq[client], nil)
		}, ""},
		{"answer to something else", func(s *stream) { s.syn(); s.raw(server, tcp.RST|flagACK, 0, s.seq[client]+1, nil) }, ""},
		{"reset of a connection", func(s *stream) { s.syn(); s.raw(server, tcp.RST|flagACK, 77, s.seq[client], nil) }, ""},
		{"the client gives up", func(s *stream) { s.syn(); s.raw(client, tcp.RST|flagACK, 0, s.seq[client], nil) }, ""},
		{"no SYN", func(s *stream) { s.raw(server, tcp.RST|flagACK, 0, 5001, nil) }, ""},
		{"no answer", (*stream).syn, ""},
		{"other port", func(s *stream) { s.port[server] = 2049; s.refused() }, ""},
		{"port of a server", func(s *stream) {
			s.port[server] = 7777
			s.refused()
			s.open()
			s.small()
			s.close(client)
			s.refused()
		}, "14"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStream()
			test.play(s)
			var got []string
			for _, f := range s.run().findings {
				if f.Rule.ID != "connection-rejected" || f.By != Responder || f.From != (rdma.End{Addr: addr[server], Port: s.port[server]}) ||
					f.To.Addr != addr[client] || f.Connection != 0 || f.Fabric != rdma.IWARP || f.Expected == "" || f.Seen == "" {
					t.Errorf("%+v", f)
				}
				got = append(got, fmt.Sprint(f.Ref.Number))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("frames %v, want %s", got, test.want)
			}
		})
	}
	s := newStream()
	s.refused()
	if r := run(Options{Rules: All(), Match: func(*rpc.View) bool { return true }}, s.packets); len(r.findings) != 0 {
		t.Errorf("with a filter: %v", r.ids())
	}
}

// Attempts that are remembered are bounded; those that are dropped without an
// answer are counted.
func TestManyAttempts(t *testing.T) {
	s := newStream()
	s.refused()
	const more = 10
	for i := range maxAttempts - 1 + more {
		s.port[client] = uint16(1000 + i)
		s.syn()
	}
	s.refused()
	r := s.run()
	n := r.check.Count(Lookup("connection-rejected"))
	if n.Found != 2 || n.NotJudged[Limit] != more || len(r.check.attempts.ring) != maxAttempts {
		t.Errorf("%d found, not judged %v, %d remembered", n.Found, n.NotJudged, len(r.check.attempts.ring))
	}
	for port := range 3 * maxPorts {
		r.check.attempts.learn(uint16(port))
	}
	if n := len(r.check.attempts.ports); n != maxPorts {
		t.Errorf("%d ports remembered", n)
	}
}

// TestSYNUnanswered: SYNs that are sent again without an answer are a finding, copies of one are not.
func TestSYNUnanswered(t *testing.T) {
	for apart, want := range map[int64]string{1e6: "", 3e9: "1 attempt to connect by TCP has no answer in the capture: 3 requests within 6.000s; the first is packet 1"} {
		s := newStream()
		for i := range int64(3) {
			s.raw(client, tcp.SYN, 5000, 0, nil)
			s.packets[i].Time = 1e18 + i*apart
		}
		got := ""
		for _, f := range s.run().findings {
			if f.Rule.ID != "connection-unanswered" || f.By != Unknown || f.To != (rdma.End{Addr: addr[server], Port: s.port[server]}) {
				t.Errorf("%+v", f)
			}
			got += f.Seen
		}
		if got != want {
			t.Errorf("%d ns apart: %q, want %q", apart, got, want)
		}
	}
}
