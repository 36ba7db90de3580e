package rocev2

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// victim is a connection whose peer is the test, which hands it packets.
type victim struct {
	s      *socket
	c      *Conn
	peer   netip.AddrPort
	memory []byte // of which the region is the middle
	region verbs.Region
	window uint32
	recvs  [][]byte // of which the middle is posted
	local  []byte   // of which the middle is used by requests of ours
}

const (
	guard      = 512
	openMemory = 4096
	recvSize   = 1500
)

func guarded(n int) []byte {
	b := make([]byte, n+2*guard)
	for i := range b {
		b[i] = 0xa5
	}
	return b
}

func middle(b []byte) []byte { return b[guard : len(b)-guard] }

// intact reports whether only the middle may have been written.
func intact(b []byte) bool {
	for i := range guard {
		if b[i] != 0xa5 || b[len(b)-1-i] != 0xa5 {
			return false
		}
	}
	return true
}

// arena is a provider that sends into the void.
func arena(t testing.TB) (*Provider, *socket) {
	p := provider(t, Options{CheckICRC: ICRCOff, MTU: 256, Outgoing: func([]byte, func([]byte)) {}, Backlog: 8})
	a := address(t)
	if _, err := p.Listen(t.Context(), netip.AddrPortFrom(a, 20049)); err != nil {
		t.Fatal(err)
	}
	s, err := p.socket(a)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func newVictim(t testing.TB, s *socket) *victim {
	v := &victim{s: s, peer: netip.MustParseAddrPort("127.0.0.99:4791"), memory: guarded(openMemory), local: guarded(3000)}
	var params verbs.Params
	for i := range 4 {
		v.recvs = append(v.recvs, guarded(recvSize))
		params.Recvs = append(params.Recvs, verbs.RecvRequest{ID: uint64(i), Buffer: middle(v.recvs[i])})
	}
	c, err := newConn(s, &params)
	if err != nil {
		t.Fatal(err)
	}
	c.respRes, c.initDepth, c.ackTimeout = 2, 2, time.Hour
	if err := s.p.addConn(s, c); err != nil {
		t.Fatal(err)
	}
	c.connect(v.peer, 0x4711, 0xfffff0, 0xfffffa, 256)
	v.c = c
	if v.region, err = c.Register(middle(v.memory), verbs.RemoteRead|verbs.RemoteWrite|verbs.WindowBind, verbs.OffsetAny); err != nil {
		t.Fatal(err)
	}
	w, err := c.AllocWindow()
	if err != nil {
		t.Fatal(err)
	}
	v.window = verbs.NextHandle(w)
	l := middle(v.local)
	post(t, c,
		verbs.WorkRequest{Op: verbs.OpBind, Handle: v.window, Offset: 1 << 40, Access: verbs.RemoteRead, Local: [][]byte{middle(v.memory)[:1000]}},
		verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{l[:600]}},
		verbs.WorkRequest{Op: verbs.OpRead, Signaled: true, Handle: 1, Offset: 2, Local: [][]byte{l[600:1000], l[1000:1700]}},
		verbs.WorkRequest{Op: verbs.OpWrite, Handle: 3, Offset: 4, Local: [][]byte{l[:300]}},
		verbs.WorkRequest{Op: verbs.OpRead, Signaled: true, Handle: 5, Offset: 6, Local: [][]byte{l[1700:3000]}},
		verbs.WorkRequest{Op: verbs.OpRead, Signaled: true, Handle: 5, Offset: 6, Local: [][]byte{l[1700:1700]}},
		verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Fence: true, Local: [][]byte{l[:1]}})
	return v
}

// packet lets the victim have a packet.
func (v *victim) packet(p *roce.Packet, payload []byte) {
	p.PKey, p.DestQP = roce.DefaultPKey, v.c.qpn
	p.Pad = uint8(-len(payload) & 3)
	b := append(p.AppendHeaders(nil), payload...)
	b = append(b, make([]byte, int(p.Pad)+roce.ICRCSize)...)
	v.datagram(b)
}

func (v *victim) datagram(b []byte) {
	v.s.now = time.Now()
	v.s.datagram(v.peer, b, len(b))
	v.s.release()
	v.s.acknowledge()
}

// check ends the connection and looks at what nobody should have touched.
func (v *victim) check(t testing.TB) {
	t.Helper()
	var buf [64]verbs.Completion
	v.c.mu.Lock()
	for i := range v.c.reads {
		if r := &v.c.reads[i]; r.active && v.c.activeReads == 0 {
			t.Error("Reads are miscounted")
		}
	}
	if v.c.inflight > 1<<20 || v.c.readWait > 1<<20 || v.c.readReqs < 0 || v.c.openReads < 0 || v.c.activeReads < 0 {
		t.Errorf("miscounted: %d packets, %d of Reads, %d requests, %d open, %d answered", v.c.inflight, v.c.readWait, v.c.readReqs, v.c.openReads, v.c.activeReads)
	}
	v.c.mu.Unlock()
	v.c.Close()
	ends := 0
	for {
		n := v.c.Poll(buf[:])
		if n == 0 {
			if v.c.Wait() != nil {
				break
			}
			continue
		}
		ends += n
		for _, x := range buf[:n] {
			if x.Op == verbs.OpRecv && x.Length > recvSize {
				t.Errorf("%+v", x)
			}
		}
	}
	if ends < 4+5 || ends > 4+7 {
		t.Errorf("%d completions of 11 requests, of which 2 are not signaled", ends)
	}
	if n, m := v.c.sendUsed.Load(), v.c.recvUsed.Load(); n != 0 || m != 0 {
		t.Errorf("%d sends and %d receives are still counted", n, m)
	}
	if !intact(v.memory) || !intact(v.local) {
		t.Error("memory beside what was open has changed")
	}
	for _, r := range v.recvs {
		if !intact(r) {
			t.Error("memory beside a receive has changed")
		}
	}
}

// FuzzPackets is a peer that sends packets of its choice to a connection, and to
// connection management.
func FuzzPackets(f *testing.F) {
	p, s := arena(f)
	f.Add([]byte{0, byte(roce.RCSendOnly), 0, 50, 0, 1, byte(roce.RCSendFirst), 0, 64, 0})
	f.Add([]byte{1, byte(roce.RCReadRequest), 0, 0, 3, 0, byte(roce.RCWriteOnly), 0, 10, 1, 0, byte(roce.RCSendOnlyInvalidate), 0, 1, 0})
	f.Add([]byte{2, 0x1f, 0, 0, 0, 2, 0x62, 1, 0, 0, 3, byte(roce.RCReadResponseFirst), 3, 64, 0, 3, byte(roce.RCReadResponseOnly), 3, 64, 0})
	f.Add([]byte{4, 0x10, 0, 0, 0, 4, 0x13, 0, 0, 0, 4, 0x15, 0, 0, 0, 5, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, in []byte) { hostile(t, p, s, in) })
}

// The same with random packets, some tens of thousands of them.
func TestHostilePackets(t *testing.T) {
	p, s := arena(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		in := make([]byte, 5*100)
		for i := range in {
			in[i] = byte(rng.Uint32())
			if i%5 == 2 && rng.IntN(3) > 0 {
				in[i] = 0
			}
			if i%5 == 1 && rng.IntN(2) == 0 {
				in[i] %= 0x18
			}
		}
		hostile(t, p, s, in)
	}
}

func hostile(t *testing.T, p *Provider, s *socket, in []byte) {
	t.Helper()
	payload := make([]byte, 5000)
	v := newVictim(t, s)
	for len(in) >= 5 && len(in) < 5000 {
		what, op, delta, size, extra := in[0], in[1], int32(int8(in[2])), int(in[3]), in[4]
		in = in[5:]
		pkt := roce.Packet{Opcode: roce.Opcode(op), AckReq: what&0x40 != 0, IETH: v.region.Handle}
		n := size * 4
		if size%3 == 0 {
			n = size
		}
		v.c.mu.Lock()
		epsn, una := v.c.epsn, v.c.una()
		v.c.mu.Unlock()
		switch what % 6 {
		case 0, 1: // requests
			pkt.PSN = uint32(int32(epsn)+delta/16) & psnMask
			pkt.RETH = roce.RETHFields{VA: v.region.Offset, RKey: v.region.Handle, DMALen: uint32(n)}
			if extra&1 != 0 {
				pkt.RETH.DMALen = uint32(extra) * 77
			}
			if extra&2 != 0 {
				pkt.RETH.VA += uint64(extra)*64 - 4096
			}
			if extra&4 != 0 {
				pkt.RETH.RKey, pkt.RETH.VA, pkt.IETH = v.window, 1<<40, v.window
			}
			if extra&8 != 0 {
				pkt.RETH.DMALen = 1<<32 - 1 - uint32(extra)
			}
			v.packet(&pkt, payload[:n])
		case 2: // acknowledgements
			pkt.Opcode, pkt.AETH.Syndrome = roce.RCAcknowledge, roce.Syndrome(op)
			pkt.PSN = uint32(int32(una)+delta) & psnMask
			v.packet(&pkt, nil)
		case 3: // responses
			pkt.PSN = uint32(int32(una)+delta/16) & psnMask
			v.packet(&pkt, payload[:n])
		case 4: // connection management
			h := roce.Packet{Opcode: roce.UDSendOnly, PKey: roce.DefaultPKey, DestQP: 1, DETH: roce.DETHFields{QKey: roce.GSIQKey, SrcQP: 1}}
			b, mad := ibcm.Append(h.AppendHeaders(nil), ibcm.Attribute(op), uint64(extra))
			d := mad.Data()
			copy(d, in)
			if extra&1 != 0 && ibcm.Attribute(op) == ibcm.AttributeREQ {
				r := ibcm.REQ(d)
				r.SetServiceID(ibcm.IPServiceID(6, 20049))
				r.SetTransport(ibcm.TransportRC)
				r.SetPathMTU(1 + extra>>5)
				r.Primary().SetGIDs(v.peer.Addr(), s.local.Addr())
				r.SetIP(v.peer, s.local.Addr(), nil)
			}
			v.datagram(append(b, 0, 0, 0, 0))
		default: // anything
			k := min(len(in), size)
			b := append([]byte(nil), in[:k]...)
			in = in[k:]
			if len(b) >= roce.BTHSize {
				binary.BigEndian.PutUint32(b[4:], v.c.qpn)
			}
			v.datagram(b)
		}
	}
	v.check(t)
	p.cm.mu.Lock()
	if n := len(p.cm.ids); n > 8 {
		t.Errorf("%d half-open connections", n)
	}
	p.cm.mu.Unlock()
}
