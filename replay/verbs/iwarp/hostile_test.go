package iwarp

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// peer is the other end of a connection, which sends what it likes.
type peer struct {
	t testing.TB
	net.Conn
	reply iwarp.MPAFrame
}

// victim listens, and returns a peer that has done MPA with it, and its
// connection.
func victim(t testing.TB, o Options, f iwarp.MPAFrame, params verbs.Params) (*peer, verbs.Conn) {
	t.Helper()
	p := provider(t, o)
	l, err := p.Listen(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	h := &peer{t: t, Conn: nc}
	if err := send(nc, &f); err != nil {
		t.Fatal(err)
	}
	r, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Accept(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if err := receive(nc, &h.reply); err != nil {
		t.Fatal(err)
	}
	return h, c
}

func (h *peer) fpdus(ulpdus ...[]byte) {
	h.t.Helper()
	var b []byte
	for _, u := range ulpdus {
		b = iwarp.AppendFPDU(b, u, h.reply.CRC)
	}
	if _, err := h.Write(b); err != nil {
		h.t.Fatal(err)
	}
}

// terminate reads until a Terminate, which it returns, or the end: nil.
func (h *peer) terminate() iwarp.Terminate {
	h.t.Helper()
	all, err := io.ReadAll(h)
	if err != nil {
		h.t.Logf("the connection ends with %v", err)
	}
	for {
		f, err := iwarp.ParseFPDU(all)
		if err != nil {
			return nil
		}
		if h.reply.CRC && f.CRC() != f.Checksum() {
			h.t.Error("wrong CRC")
		}
		if u := iwarp.ULPDU(f.ULPDU()); u.Valid(len(u)) && u.Control().Opcode() == iwarp.OpTerminate {
			return iwarp.Terminate(u.Payload())
		}
		all = all[len(f):]
	}
}

func untagged(op iwarp.Opcode, last bool, msn, mo uint32, payload ...byte) []byte {
	return append(iwarp.AppendUntagged(nil, iwarp.NewControl(op, last), 0, msn, mo), payload...)
}

func tagged(op iwarp.Opcode, last bool, stag uint32, to uint64, payload ...byte) []byte {
	return append(iwarp.AppendTagged(nil, iwarp.NewControl(op, last), stag, to), payload...)
}

func readRequest(msn, size, stag uint32, to uint64) []byte {
	return iwarp.AppendReadRequest(untagged(iwarp.OpReadRequest, true, msn, 0), 7, 0, size, stag, to)
}

// TestHostile: each wrong message ends the connection with the Terminate that
// the RFCs name, and changes nothing.
func TestHostile(t *testing.T) {
	const size, guard, at = 1000, 100, 0x7000
	type opened struct{ stag uint32 }
	cases := []struct {
		name        string
		messages    func(opened) [][]byte
		layer       iwarp.TerminateLayer
		etype, code uint8
	}{
		{"Send without a receive", func(opened) [][]byte {
			return [][]byte{untagged(iwarp.OpSend, true, 1, 0), untagged(iwarp.OpSend, true, 2, 0)}
		}, 1, 2, 2},
		{"Send out of order", func(opened) [][]byte { return [][]byte{untagged(iwarp.OpSend, true, 2, 0)} }, 1, 2, 3},
		{"Send from the middle", func(opened) [][]byte { return [][]byte{untagged(iwarp.OpSend, true, 1, 4, 1)} }, 1, 2, 4},
		{"Send with a hole", func(opened) [][]byte {
			return [][]byte{untagged(iwarp.OpSend, false, 1, 0, 1, 2, 3, 4), untagged(iwarp.OpSend, true, 1, 8, 1)}
		}, 1, 2, 4},
		{"Send with an offset that wraps", func(opened) [][]byte {
			return [][]byte{untagged(iwarp.OpSend, false, 1, 0, 1, 2), untagged(iwarp.OpSend, true, 1, 0xfffffffe, 1)}
		}, 1, 2, 4},
		{"Send too long", func(opened) [][]byte { return [][]byte{untagged(iwarp.OpSend, true, 1, 0, make([]byte, 65)...)} }, 1, 2, 5},
		{"Send too long in segments", func(opened) [][]byte {
			return [][]byte{untagged(iwarp.OpSend, false, 1, 0, make([]byte, 60)...), untagged(iwarp.OpSend, true, 1, 60, make([]byte, 5)...)}
		}, 1, 2, 5},
		{"Send that changes its kind", func(opened) [][]byte {
			return [][]byte{untagged(iwarp.OpSend, false, 1, 0, 1, 2, 3, 4), untagged(iwarp.OpSendSolicited, true, 1, 4, 1)}
		}, 0, 2, 6},
		{"Send with Invalidate of nothing", func(opened) [][]byte {
			return [][]byte{iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpSendInvalidate, true), 0x12345678, 1, 0)}
		}, 0, 1, 0},
		{"Immediate Data", func(opened) [][]byte { return [][]byte{untagged(iwarp.OpImmediate, true, 1, 0, make([]byte, 8)...)} }, 0, 2, 6},
		{"Atomic Request", func(opened) [][]byte {
			return [][]byte{untagged(iwarp.OpAtomicRequest, true, 1, 0, make([]byte, iwarp.AtomicRequestLen)...)}
		}, 0, 2, 6},
		{"unknown queue", func(opened) [][]byte {
			b := untagged(iwarp.OpSend, true, 1, 0)
			iwarp.Untagged(b).SetQN(5)
			return [][]byte{b}
		}, 1, 2, 1},
		{"unknown opcode", func(opened) [][]byte { return [][]byte{untagged(15, true, 1, 0)} }, 0, 2, 6},
		{"DDP version 2", func(opened) [][]byte {
			b := tagged(iwarp.OpWrite, true, 1, 0, 1)
			b[0] = b[0]&^3 | 2
			return [][]byte{b}
		}, 1, 1, 4},
		{"DDP version 0, untagged", func(opened) [][]byte {
			b := untagged(iwarp.OpSend, true, 1, 0, 1)
			b[0] &^= 3
			return [][]byte{b}
		}, 1, 2, 6},
		{"RDMAP version 0", func(opened) [][]byte {
			b := untagged(iwarp.OpSend, true, 1, 0, 1)
			b[1] &^= 0xc0
			return [][]byte{b}
		}, 0, 2, 5},
		{"too short for a header", func(opened) [][]byte { return [][]byte{tagged(iwarp.OpWrite, true, 1, 0)[:13]} }, 2, 0, 3},
		{"empty ULPDU", func(opened) [][]byte { return [][]byte{{}} }, 2, 0, 3},
		{"Write to nothing", func(opened) [][]byte { return [][]byte{tagged(iwarp.OpWrite, true, 0xabc, at, 1)} }, 1, 1, 0},
		{"Write before the region", func(o opened) [][]byte { return [][]byte{tagged(iwarp.OpWrite, true, o.stag, at-1, 1, 2)} }, 1, 1, 1},
		{"Write over its end", func(o opened) [][]byte { return [][]byte{tagged(iwarp.OpWrite, true, o.stag, at+size-1, 1, 2)} }, 1, 1, 1},
		{"Write that wraps", func(o opened) [][]byte {
			return [][]byte{tagged(iwarp.OpWrite, true, o.stag, ^uint64(0), 1, 2)}
		}, 1, 1, 3},
		{"large Write over the end", func(o opened) [][]byte {
			return [][]byte{tagged(iwarp.OpWrite, true, o.stag, at, make([]byte, 60000)...)}
		}, 1, 1, 1},
		{"Write to memory for Reads", func(o opened) [][]byte { return [][]byte{tagged(iwarp.OpWrite, true, o.stag+1, at, 1)} }, 0, 1, 2},
		{"Read Response to nothing", func(opened) [][]byte { return [][]byte{tagged(iwarp.OpReadResponse, true, 1, 0, 1)} }, 1, 1, 0},
		{"Read of nothing known", func(opened) [][]byte { return [][]byte{readRequest(1, 10, 0xabc, at)} }, 0, 1, 0},
		{"Read over the end", func(o opened) [][]byte { return [][]byte{readRequest(1, size+1, o.stag, at)} }, 0, 1, 1},
		{"Read of 4 GiB", func(o opened) [][]byte { return [][]byte{readRequest(1, 0xffffffff, o.stag, at)} }, 0, 1, 1},
		{"Read that wraps", func(o opened) [][]byte { return [][]byte{readRequest(1, 100, o.stag, ^uint64(0)-10)} }, 0, 1, 4},
		{"Read of memory for Writes", func(o opened) [][]byte { return [][]byte{readRequest(1, 10, o.stag, at)} }, 0, 1, 2},
		{"Read out of order", func(o opened) [][]byte { return [][]byte{readRequest(9, 10, o.stag, at)} }, 1, 2, 3},
		{"Read Request cut short", func(o opened) [][]byte { return [][]byte{readRequest(1, 10, o.stag, at)[:40]} }, 0, 2, 0xff},
		{"Read Request too long", func(o opened) [][]byte { return [][]byte{append(readRequest(1, 10, o.stag, at), 0)} }, 1, 2, 5},
	}
	for _, crc := range []CRC{CRCOff, CRCOn} {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				small := make([]byte, 64+guard)
				h, conn := victim(t, Options{CRC: crc}, iwarp.MPAFrame{Revision: 1}, verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: small[:64]}}})
				access := verbs.RemoteRead | verbs.RemoteWrite
				mem := make([]byte, size+2*guard)
				switch c.name {
				case "Write to memory for Reads":
					access = verbs.RemoteRead
				case "Read of memory for Writes":
					access = verbs.RemoteWrite
				}
				r, err := conn.Register(mem[guard:guard+size], access, at)
				if err != nil {
					t.Fatal(err)
				}
				stag := r.Handle
				if c.name == "Write to memory for Reads" {
					stag--
				}
				h.fpdus(c.messages(opened{stag})...)
				term := h.terminate()
				if term == nil {
					t.Fatal("no Terminate")
				}
				if term.Layer() != c.layer || term.EType() != c.etype || term.Code() != c.code {
					t.Errorf("Terminate %d/%d/%d: %v, want %d/%d/%d", term.Layer(), term.EType(), term.Code(), term, c.layer, c.etype, c.code)
				}
				for conn.Wait() == nil {
					var d [4]verbs.Completion
					conn.Poll(d[:])
				}
				var status *verbs.StatusError
				if !errors.As(conn.Err(), &status) {
					t.Errorf("ended with %v", conn.Err())
				}
				conn.Close()
				for _, b := range [][]byte{mem, small[64:]} {
					for i, v := range b {
						if v != 0 {
							t.Fatalf("byte %d was written", i)
						}
					}
				}
			})
		}
	}
}

// TestBadCRC: a corrupted segment does not get into memory.
func TestBadCRC(t *testing.T) {
	h, conn := victim(t, Options{CRC: CRCOn}, iwarp.MPAFrame{Revision: 2, Enhanced: true, IRD: 1, ORD: 1}, verbs.Params{})
	mem := make([]byte, 40000)
	r, err := conn.Register(mem, verbs.RemoteWrite, 0)
	if err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 30000)
	payload[20000] = 1
	b := iwarp.AppendFPDU(nil, tagged(iwarp.OpWrite, true, r.Handle, 0, payload...), true)
	b[20000]++
	if _, err := h.Write(b); err != nil {
		t.Fatal(err)
	}
	term := h.terminate()
	if term == nil || term.Layer() != iwarp.LayerMPA || term.Code() != codeCRC {
		t.Errorf("Terminate %v", term)
	}
	conn.Close()
	for i, v := range mem {
		if v != 0 {
			t.Fatalf("byte %d was written", i)
		}
	}
}

// TestBadMarker: a marker that does not point to the start of its FPDU.
func TestBadMarker(t *testing.T) {
	h, _ := victim(t, Options{Markers: true}, iwarp.MPAFrame{Revision: 1}, recvs(1, 2000))
	if !h.reply.Markers {
		t.Fatal("the reply asks for no markers")
	}
	b := iwarp.AppendMarkedFPDU(nil, untagged(iwarp.OpSend, true, 1, 0, make([]byte, 1500)...), false, 0)
	binary.BigEndian.PutUint16(b[512+2:], 4)
	if _, err := h.Write(b); err != nil {
		t.Fatal(err)
	}
	if term := h.terminate(); term == nil || term.Layer() != iwarp.LayerMPA || term.Code() != codeLength {
		t.Errorf("Terminate %v", term)
	}
}

// TestReadFlood: a peer that starts more Reads than it may and takes no answer
// does not fill our memory.
func TestReadFlood(t *testing.T) {
	h, conn := victim(t, Options{}, iwarp.MPAFrame{Revision: 2, Enhanced: true, IRD: 4, ORD: 4}, verbs.Params{ResponderResources: 4})
	mem := make([]byte, 64<<20)
	r, err := conn.Register(mem, verbs.RemoteRead, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(9) {
		h.fpdus(readRequest(i+1, uint32(len(mem)), r.Handle, 0))
	}
	for conn.Wait() == nil {
		t.Fatal("a completion of nothing")
	}
	// The region can be closed although the peer reads nothing.
	conn.Close()
}

// TestStall: a peer that reads nothing loses the connection.
func TestStall(t *testing.T) {
	_, conn := victim(t, Options{Stall: 20 * time.Millisecond}, iwarp.MPAFrame{Revision: 2, Enhanced: true, IRD: 4, ORD: 4}, verbs.Params{})
	big := make([]byte, 64<<20)
	releaseHold(conn)
	if err := conn.Post(verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{big}}); err != nil {
		t.Fatal(err)
	}
	var d [4]verbs.Completion
	for conn.Wait() == nil {
		conn.Poll(d[:])
	}
	if d[0].Status != verbs.StatusFlushed {
		t.Errorf("%+v", d[0])
	}
	var s *verbs.StatusError
	if !errors.As(conn.Err(), &s) || s.Status != verbs.StatusRetryExceeded {
		t.Errorf("ended with %v", conn.Err())
	}
}

// TestUnfinished: a peer that begins an FPDU, or a Send of several, and does not go on loses the connection; one that says
// nothing does not.
func TestUnfinished(t *testing.T) {
	whole := iwarp.AppendFPDU(nil, untagged(iwarp.OpSend, false, 1, 0, make([]byte, 60)...), false)
	for _, c := range []struct {
		name  string
		bytes []byte
	}{
		{"one byte", []byte{0xff}},
		{"the length of a long FPDU", []byte{0xff, 0xfc}},
		{"a part of an FPDU", whole[:40]},
		{"an FPDU that lacks its CRC", whole[:len(whole)-4]},
		{"the first FPDU of a Send", whole},
		{"an FPDU and a half", append(whole[:len(whole):len(whole)], whole[:20]...)},
	} {
		h, conn := victim(t, Options{Stall: 20 * time.Millisecond}, iwarp.MPAFrame{Revision: 2, Enhanced: true, IRD: 4, ORD: 4}, recvs(1, 100))
		if _, err := h.Write(c.bytes); err != nil {
			t.Fatal(err)
		}
		var d [4]verbs.Completion
		for conn.Wait() == nil {
			conn.Poll(d[:])
		}
		var s *verbs.StatusError
		if !errors.As(conn.Err(), &s) || s.Status != verbs.StatusRetryExceeded {
			t.Errorf("%s: ended with %v", c.name, conn.Err())
		}
	}
	// Silence between messages is no stall, however long.
	h, v := victim(t, Options{}, iwarp.MPAFrame{Revision: 2, Enhanced: true, IRD: 4, ORD: 4}, recvs(1, 100))
	watch := &v.(*conn).rx.watch
	if _, err := h.Write(whole[:10]); err != nil {
		t.Fatal(err)
	}
	for !watch.runs.Load() {
		runtime.Gosched()
	}
	if _, err := h.Write(whole[10:]); err != nil {
		t.Fatal(err)
	}
	h.fpdus(untagged(iwarp.OpSend, true, 1, 60, 1))
	if err := v.Wait(); err != nil {
		t.Fatal(err)
	}
	for watch.at.Load() != 0 {
		runtime.Gosched()
	}
	watch.look()
	if v.Err() != nil || watch.runs.Load() {
		t.Errorf("ended with %v", v.Err())
	}
}

// TestReset: a peer that goes by resetting the connection has disconnected.
func TestReset(t *testing.T) {
	h, conn := victim(t, Options{}, iwarp.MPAFrame{Revision: 1}, recvs(2, 100))
	h.fpdus(untagged(iwarp.OpSend, true, 1, 0, 1, 2, 3))
	if err := conn.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := h.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	h.Close()
	var got []verbs.Completion
	for conn.Wait() == nil {
		var d [4]verbs.Completion
		got = append(got, d[:conn.Poll(d[:])]...)
	}
	if len(got) != 2 || got[0].Status != verbs.StatusSuccess || got[1].Status != verbs.StatusFlushed {
		t.Errorf("%+v", got)
	}
	if !errors.Is(conn.Err(), verbs.ErrDisconnected) {
		t.Errorf("ended with %v", conn.Err())
	}
}

// releaseHold lets a responder send that has seen nothing of its peer.
func releaseHold(v verbs.Conn) {
	c := v.(*conn)
	c.mu.Lock()
	c.tx.hold = false
	c.mu.Unlock()
}

// TestSolicited: all four kinds of Send are received.
func TestSolicited(t *testing.T) {
	h, conn := victim(t, Options{}, iwarp.MPAFrame{Revision: 1}, recvs(4, 100))
	r, err := conn.Register(make([]byte, 10), verbs.RemoteRead, 0)
	if err != nil {
		t.Fatal(err)
	}
	h.fpdus(untagged(iwarp.OpSendSolicited, true, 1, 0, 1, 2, 3),
		append(iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpSendSolicitedInvalidate, true), r.Handle, 2, 0), 1))
	var got []verbs.Completion
	for len(got) < 2 {
		if err := conn.Wait(); err != nil {
			t.Fatal(err)
		}
		var d [4]verbs.Completion
		got = append(got, d[:conn.Poll(d[:])]...)
	}
	if got[0].Length != 3 || got[0].Invalidated || !got[1].Invalidated || got[1].Handle != r.Handle || got[1].Length != 1 {
		t.Errorf("%+v", got)
	}
}

// TestSetup: what MPA frames can ask for.
func TestSetup(t *testing.T) {
	// Revision 1 knows no depths.
	h, c := victim(t, Options{}, iwarp.MPAFrame{Revision: 1, CRC: true, Private: []byte("x")}, verbs.Params{PrivateData: []byte("yz")})
	if h.reply.Revision != 1 || h.reply.Enhanced || !h.reply.CRC || string(h.reply.Private) != "yz" || string(c.Info().PrivateData) != "x" {
		t.Errorf("%+v", h.reply)
	}
	// Depths are exchanged and limited, and one ready-to-receive message chosen.
	h, c = victim(t, Options{}, iwarp.MPAFrame{
		Revision: 2, Enhanced: true, IRD: 3, ORD: 9, PeerToPeer: true, RTRRead: true, RTRSend: true,
	}, verbs.Params{ResponderResources: 5, InitiatorDepth: 5})
	if r := h.reply; r.Revision != 2 || r.IRD != 5 || r.ORD != 3 || !r.PeerToPeer || !r.RTRRead || r.RTRWrite || r.RTRSend {
		t.Errorf("%+v", r)
	}
	if i := c.Info(); i.ResponderResources != 5 || i.InitiatorDepth != 3 {
		t.Errorf("%+v", i)
	}
}

// TestRevision1Peer: a listener of revision 1 gets a second attempt.
func TestRevision1Peer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	revisions := make(chan uint8, 2)
	go func() {
		for range 2 {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			var f iwarp.MPAFrame
			if receive(nc, &f) != nil {
				return
			}
			revisions <- f.Revision
			if send(nc, &iwarp.MPAFrame{Reply: true, Revision: 1}) != nil {
				return
			}
		}
	}()
	c, err := provider(t, Options{}).Dial(t.Context(), addrPort(l.Addr()), verbs.Params{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := <-revisions, <-revisions; a != 2 || b != 1 {
		t.Errorf("revisions %d, %d", a, b)
	}
	c.Close()
}

// TestRandomStreams sends damaged streams through a real socket.
func TestRandomStreams(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		h, conn := victim(t, Options{}, iwarp.MPAFrame{Revision: 1}, recvs(3, 1000))
		all := make([]byte, 100000+2000)
		r, err := conn.Register(all[1000:101000], verbs.RemoteRead|verbs.RemoteWrite, 0)
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		for i := range uint32(3) {
			b = iwarp.AppendFPDU(b, tagged(iwarp.OpWrite, true, r.Handle, uint64(rnd.IntN(50000)), make([]byte, 40000+rnd.IntN(20000))...), false)
			b = iwarp.AppendFPDU(b, untagged(iwarp.OpSend, true, i+1, 0, make([]byte, 500)...), false)
			b = iwarp.AppendFPDU(b, readRequest(i+1, 100, r.Handle, 0), false)
		}
		for range 1 + rnd.IntN(4) {
			b[rnd.IntN(len(b))] ^= byte(1 + rnd.IntN(255))
		}
		if rnd.IntN(2) == 0 {
			b = b[:rnd.IntN(len(b))]
		}
		go func() {
			h.Write(b) // it may be refused
			h.Conn.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(io.Discard, h)
		for conn.Wait() == nil {
			var d [4]verbs.Completion
			conn.Poll(d[:])
		}
		conn.Close()
		for _, g := range [][]byte{all[:1000], all[101000:]} {
			for _, v := range g {
				if v != 0 {
					t.Fatal("memory around the region was written")
				}
			}
		}
	}
}
