package iwarp

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// pair is a connection after its setup, with a packet number that counts.
type pair struct {
	*recorder
	c     *Conn
	k     *rdma.Connection
	w     *wire
	peers [2]*peer
	at    [2]int
}

func newPair(o Options, request, reply *MPAFrame) *pair {
	p := &pair{recorder: newRecorder(), k: connection()}
	p.c = NewTracker(p.recorder, o).New(p.k)
	p.w = &wire{c: p.c}
	crc := request != nil && request.CRC || reply != nil && reply.CRC
	p.peers = [2]*peer{newPeer(crc, false, 1442), newPeer(crc, false, 1442)}
	p.w.segment(0, tcp.SYN, 0, nil)
	p.w.segment(1, tcp.SYN, 0, nil)
	if request != nil {
		p.peers[0].mpa(request)
	}
	if reply != nil {
		p.peers[1].mpa(reply)
	}
	p.flush(0)
	p.flush(1)
	return p
}

func plainPair() *pair {
	return newPair(Options{}, &MPAFrame{Revision: 1}, &MPAFrame{Revision: 1, Reply: true})
}

// flush sends what a peer has written, in one segment, and returns the packet.
func (p *pair) flush(dir int) uint64 {
	s := p.peers[dir].stream
	from := p.at[dir]
	p.at[dir] = len(s)
	if from == len(s) {
		return 0
	}
	return p.w.segment(dir, 0, from, s[from:])
}

// TestRequestAgain: an MPA Request that TCP sends again, because nobody answers, is asked again.
func TestRequestAgain(t *testing.T) {
	for _, answered := range []bool{false, true} {
		var reply *MPAFrame
		want := uint32(4)
		if answered {
			reply, want = &MPAFrame{Revision: 1, Reply: true}, 1
		}
		p := newPair(Options{}, &MPAFrame{Revision: 1}, reply)
		for range 3 {
			p.w.segment(0, 0, 0, p.peers[0].stream)
		}
		if p.k.Requests != want {
			t.Errorf("answered %v: %d requests, want %d", answered, p.k.Requests, want)
		}
	}
}

func TestAgainAndAcked(t *testing.T) {
	p := plainPair()
	a, b := p.peers[0], p.peers[1]
	r := rand.New(rand.NewSource(1))
	start := len(a.stream)
	a.untagged(OpSend, 0, random(r, 100))
	p.flush(0) // packet 5
	if !has(&p.k.Sent[0], 1, 0, 0) {
		t.Fatalf("%+v", p.k.Sent[0])
	}
	// Sent again whole, before and after its acknowledgment; and in part.
	p.w.segment(0, 0, start, a.stream[start:])         // 6
	p.w.segment(0, 0, start, a.stream[start:start+20]) // 7
	p.w.acked[1] = uint32(len(a.stream) - 1)           // not all
	p.w.segment(1, 0, p.at[1], nil)                    // 8
	p.w.acked[1] = uint32(len(a.stream))               //
	b.untagged(OpReadRequest, 0, AppendReadRequest(nil, 1, 0x100, 64, 2, 0x200))
	at := p.at[1]
	p.flush(1)                           // 9 acknowledges the Send
	p.w.segment(1, 0, at, b.stream[at:]) // 10
	a.tagged(OpReadResponse, 1, 0x100, random(r, 64))
	at = p.at[0]
	p.flush(0)                                 // 11
	p.w.segment(0, 0, at+20, a.stream[at+20:]) // 12: without the first 4 bytes of payload
	p.w.segment(0, 0, start, a.stream[start:]) // 13: the Send once more, and the response
	at = p.at[1]
	b.tagged(OpWrite, 9, 0x900, random(r, 2000))
	s := b.stream[at:]
	p.w.segment(1, 0, at, s[:1000])      // 14
	p.w.segment(1, 0, at, s[:1000])      // 15: not yet decoded
	p.w.segment(1, 0, at+1000, s[1000:]) // 16
	want := []string{
		"again send 1 packet 6 complete true",
		"again send 1 packet 7 complete false",
		"acked send 1 packet 9",
		"again read 2 packet 10",
		"again kind 2 offset 204 length 60 packet 12",
		"again send 1 packet 13 complete true",
		"again kind 2 offset 200 length 64 packet 13",
		"again kind 1 offset 900 length 984 packet 15",
	}
	if !slices.Equal(p.refs, want) {
		t.Errorf("%q\nwant\n%q", p.refs, want)
	}
	if p.k.Sent[0].Retransmitted != 4 || p.k.Sent[1].Retransmitted != 2 {
		t.Errorf("%d and %d retransmitted", p.k.Sent[0].Retransmitted, p.k.Sent[1].Retransmitted)
	}
	if !has(&p.k.Sent[1], 0, 1, 1) || p.k.Sent[1].WriteBytes != 2000 || p.k.Sent[0].ReadBytes != 64 || p.k.Sent[1].Acks != 1 {
		t.Errorf("%+v", p.k.Sent)
	}
}

// TestSendPackets checks the packets of Sends.
func TestSendPackets(t *testing.T) {
	p := plainPair()
	a := p.peers[0]
	at := p.at[0]
	a.untagged(OpSend, 0, make([]byte, 5000))
	a.untagged(OpSend, 0, make([]byte, 100))
	s := a.stream
	p.w.segment(0, 0, at, s[at:at+100])            // 5
	p.w.segment(0, 0, at+2000, s[at+2000:at+4000]) // 6: early
	p.w.segment(0, 0, at, s[at:at+100])            // 7: again
	p.w.segment(0, 0, at+4000, s[at+4000:])        // 8: early, with all of the second
	p.w.segment(0, 0, at+100, s[at+100:at+2000])   // 9
	if len(p.sends) != 2 {
		t.Fatalf("%d Sends", len(p.sends))
	}
	if g := p.sends[0]; g.first != 5 || g.last != 9 || g.packets != 4 || g.again != 1 || g.length != 5000 {
		t.Errorf("first Send: %d-%d, %d packets, %d again", g.first, g.last, g.packets, g.again)
	}
	if g := p.sends[1]; g.first != 8 || g.last != 9 || g.packets != 1 || g.again != 0 {
		t.Errorf("second Send: %d-%d, %d packets, %d again", g.first, g.last, g.packets, g.again)
	}
}

// TestCutSends loses parts of Sends.
func TestCutSends(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, test := range []struct {
		name     string
		lose     [2]int // offsets in the stream of the Send
		have, of int
	}{
		{"inside the first segment", [2]int{500, 600}, 480, 5000},
		{"the second segment", [2]int{1448, 2 * 1448}, 1424, 5000},
		{"two segments and a half", [2]int{1448, 3000}, 1424, 5000},
		{"the end", [2]int{3 * 1448, 5000 + 4*24}, 3 * 1424, 3*1424 + 1},
		{"all", [2]int{0, 5000 + 4*24}, -1, 0},
		{"the beginning", [2]int{0, 1448}, -1, 0},
		{"the first byte", [2]int{0, 1}, -1, 0},
	} {
		p := plainPair()
		a := p.peers[0]
		at := p.at[0]
		payload := random(r, 5000)
		a.untagged(OpSend, 0, payload)
		end := len(a.stream)
		a.untagged(OpSend, 0, payload[:10])
		s := a.stream
		for o := at; o < len(s); {
			e := min(len(s), (o-at)/1448*1448+1448+at)
			e = min(e, len(s))
			if o < at+test.lose[1] {
				if o >= at+test.lose[0] {
					o = at + test.lose[1]
					continue
				}
				e = min(e, at+test.lose[0])
			}
			if o < end {
				e = min(e, end)
			}
			p.w.segment(0, 0, o, s[o:e])
			o = e
		}
		p.w.acked[1] = uint32(len(s))
		p.w.segment(1, 0, p.at[1], nil)
		p.c.Close("", rdma.Ref{})
		want := 2
		if test.have < 0 {
			want = 1
		}
		if len(p.sends) != want {
			t.Errorf("%s: %d Sends", test.name, len(p.sends))
			continue
		}
		if test.have >= 0 {
			if g := p.sends[0]; len(g.data) != test.have || g.length != test.of || !slices.Equal(g.data, payload[:test.have]) {
				t.Errorf("%s: %d of %d bytes", test.name, len(g.data), g.length)
			}
		}
		if g := p.sends[want-1]; g.length != 10 || len(g.data) != 10 {
			t.Errorf("%s: then a Send of %d/%d bytes", test.name, len(g.data), g.length)
		}
		if n := p.k.Sent[0].Gaps; n != uint64(test.lose[1]-test.lose[0]) || p.events[rdma.EventGap] != 1 {
			t.Errorf("%s: %d bytes lost, %d events", test.name, n, p.events[rdma.EventGap])
		}
	}
}

func TestReadMatching(t *testing.T) {
	p := plainPair()
	a, b := p.peers[0], p.peers[1]
	// Two Reads into neighbouring places of one sink, one into another, one of
	// nothing, and two whose answers are lost in part or whole.
	b.untagged(OpReadRequest, 0, AppendReadRequest(nil, 1, 0, 3000, 0xa, 0x1000))
	b.untagged(OpReadRequest, 0, AppendReadRequest(nil, 1, 3000, 10, 0xb, 0x2000))
	b.untagged(OpReadRequest, 0, AppendReadRequest(nil, 2, 3000, 10, 0xc, 0x3000))
	b.untagged(OpReadRequest, 0, AppendReadRequest(nil, 2, 0, 0, 0xd, 0))
	b.untagged(OpReadRequest, 0, AppendReadRequest(nil, 3, 0, 10, 0xe, 0))
	b.untagged(OpReadRequest, 0, AppendReadRequest(nil, 4, ^uint64(0)-9, 10, 0xf, ^uint64(0)-9))
	p.flush(1)
	a.tagged(OpReadResponse, 1, 0, make([]byte, 3000))
	a.tagged(OpReadResponse, 1, 3000, make([]byte, 10))
	a.tagged(OpReadResponse, 2, 3000, make([]byte, 10))
	a.tagged(OpReadResponse, 2, 0, nil)
	a.tagged(OpReadResponse, 4, ^uint64(0)-9, make([]byte, 9))
	a.tagged(OpReadResponse, 3, 0, make([]byte, 10)) // out of order: nobody's
	a.tagged(OpReadResponse, 5, 0, make([]byte, 10)) // nobody's
	p.flush(0)
	var got []string
	for _, l := range p.log {
		if strings.HasPrefix(l, "data") {
			f := strings.Fields(l)
			got = append(got, f[3]+" "+f[4]+" "+f[6])
		}
	}
	want := []string{
		"offset=1000 1428/1428 last=false", "offset=1594 1428/1428 last=false", "offset=1b28 144/144 last=true",
		"offset=2000 10/10 last=true", "offset=3000 10/10 last=true", "offset=0 0/0 last=true",
		"offset=fffffffffffffff6 9/9 last=true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if p.k.Sent[0].ReadBytes != 3049 || p.k.Sent[1].Reads != 6 {
		t.Errorf("%+v", p.k.Sent)
	}
}

func TestReadyToReceive(t *testing.T) {
	for i, rtr := range []func(*peer){
		func(p *peer) { p.untagged(OpSend, 0, nil) },
		func(p *peer) { p.tagged(OpWrite, 0, 0, nil) },
		func(p *peer) { p.untagged(OpReadRequest, 0, AppendReadRequest(nil, 0, 0, 0, 0, 0)) },
	} {
		p := newPair(Options{}, &MPAFrame{Revision: 2, Enhanced: true, PeerToPeer: true, RTRSend: true, RTRWrite: true, RTRRead: true},
			&MPAFrame{Reply: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTRWrite: true})
		rtr(p.peers[0])
		p.flush(0)
		if i == 2 {
			p.peers[1].tagged(OpReadResponse, 0, 0, nil)
		}
		p.peers[1].untagged(OpSend, 0, []byte("call"))
		p.flush(1)
		p.peers[0].untagged(OpSend, 0, []byte("answer"))
		p.flush(0)
		if len(p.log) != 2 || len(p.sends) != 2 || p.k.Sent[0].Reads+p.k.Sent[0].Writes != 0 || p.k.Sent[0].Sends != 1 {
			t.Errorf("%d: %q", i, p.log)
		}
		if !p.k.Setup[0].PeerToPeer || !p.k.Setup[1].PeerToPeer {
			t.Error("peer-to-peer mode not seen")
		}
	}
}

// TestTerminateAcknowledges: TCP has what came before a Terminate message; nobody knows that RDMA took it.
func TestTerminateAcknowledges(t *testing.T) {
	p := plainPair()
	p.peers[1].untagged(OpSend, 0, []byte("call"))
	p.w.acked[0] = uint32(len(p.peers[1].stream))
	p.flush(1)
	p.peers[1].untagged(OpSend, 0, []byte("another"))
	p.flush(1)
	p.peers[0].untagged(OpSend, 0, []byte("reply"))
	p.flush(0)
	p.w.acked[0] = uint32(len(p.peers[1].stream))
	p.peers[0].untagged(OpTerminate, 0, AppendTerminate(nil, LayerDDP, 1, 0, 0, nil, nil))
	p.flush(0)
	p.w.segment(0, tcp.RST, p.at[0], nil)
	if len(p.acked) != 1 || p.events[rdma.EventTerminate] != 1 {
		t.Errorf("acknowledged: %v; events: %v", p.acked, p.events)
	}
}

// TestTerminateNames: TCP has acknowledged all by itself when a Terminate message refuses a part. RDMA took what came before the segment that is named.
func TestTerminateNames(t *testing.T) {
	header := func(op Opcode, stag, msn uint32, to uint64) ULPDU {
		p := newPeer(false, false, 1442)
		if op.Tagged() {
			p.tagged(op, stag, to, nil)
		} else {
			p.msn[QueueSend] = msn - 1
			p.untagged(op, 0, nil)
		}
		u := ULPDU(p.stream[FPDUHeaderLen:])
		return u[:u.HeaderLen()]
	}
	for _, c := range []struct {
		name   string
		header ULPDU
		live   bool
		idle   uint64 // packets of a microsecond between the acknowledgement and the Terminate message
		data   bool   // a Send in between
		want   int    // Sends that were acknowledged
	}{
		{name: "nothing"},
		{name: "the first Send", header: header(OpSend, 0, 1, 0)},
		{name: "the Write", header: header(OpWrite, 7, 0, 100), want: 1},
		{name: "another Write", header: header(OpWrite, 8, 0, 100)},
		{name: "the second Send", header: header(OpSend, 0, 2, 0), want: 1},
		{name: "the third Send", header: header(OpSend, 0, 3, 0), want: 2},
		{name: "the first Send, live", header: header(OpSend, 0, 1, 0), live: true, want: 2},
		{name: "the first Send, late", header: header(OpSend, 0, 1, 0), idle: 20000, want: 2},
		{name: "the first Send, after data", header: header(OpSend, 0, 1, 0), data: true, want: 2},
	} {
		p := newPair(Options{Live: c.live}, &MPAFrame{Revision: 1}, &MPAFrame{Revision: 1, Reply: true})
		p.peers[1].untagged(OpSend, 0, []byte("reply"))
		p.peers[1].tagged(OpWrite, 7, 100, []byte("data"))
		p.peers[1].untagged(OpSend, 0, []byte("another"))
		p.flush(1)
		p.w.acked[0] = uint32(len(p.peers[1].stream))
		p.w.segment(0, 0, p.at[0], nil)
		if c.data {
			p.peers[0].untagged(OpSend, 0, []byte("call"))
			p.flush(0)
		}
		p.w.n += c.idle
		p.peers[1].untagged(OpSend, 0, []byte("third"))
		p.flush(1)
		p.w.acked[0] = uint32(len(p.peers[1].stream))
		p.peers[0].untagged(OpTerminate, 0, AppendTerminate(nil, LayerDDP, 1, 0, 18, c.header, nil))
		p.flush(0)
		p.w.segment(1, tcp.RST, p.at[1], nil)
		if len(p.acked) != c.want {
			t.Errorf("%s: %d Sends acknowledged, not %d", c.name, len(p.acked), c.want)
		}
	}
}

func TestEndings(t *testing.T) {
	p := plainPair()
	p.peers[0].untagged(OpTerminate, 0, AppendTerminate(nil, LayerDDP, 2, 2, 0, nil, nil))
	p.flush(0)
	p.w.segment(0, tcp.FIN, p.at[0], nil)
	if p.k.State != rdma.Established || p.closed != 0 {
		t.Errorf("%v after one FIN", p.k.State)
	}
	p.w.segment(1, tcp.FIN, p.at[1], nil)
	if p.events[rdma.EventTerminate] != 1 || p.k.Terminated != "Terminate: DDP: untagged buffer error: invalid MSN: no buffer" || p.k.State != rdma.Closed || p.closed != 1 {
		t.Errorf("%v %q %v", p.events, p.k.Terminated, p.k.State)
	}

	p = plainPair()
	p.peers[0].untagged(OpSend, 0, make([]byte, 3000))
	p.w.segment(0, 0, p.at[0], p.peers[0].stream[p.at[0]:p.at[0]+2000])
	p.w.segment(1, tcp.RST, p.at[1], nil)
	if p.k.Terminated != "TCP reset from "+link.AddrString(p.k.Ends[1].Addr) || p.k.State != rdma.Closed || p.closed != 1 {
		t.Errorf("%q %v", p.k.Terminated, p.k.State)
	}
	if len(p.sends) != 1 || p.sends[0].length != 2849 || len(p.sends[0].data) != 1424+532 {
		t.Errorf("Send under way at the reset: %+v", p.sends)
	}

	p = newPair(Options{}, &MPAFrame{Revision: 1}, &MPAFrame{Revision: 1, Reply: true, Reject: true})
	if p.k.State != rdma.Rejected || p.k.Terminated == "" {
		t.Errorf("%v %q", p.k.State, p.k.Terminated)
	}
	p.w.segment(1, tcp.RST, p.at[1], nil)
	if p.k.State != rdma.Rejected || p.closed != 1 {
		t.Errorf("%v after the end", p.k.State)
	}

	p = newPair(Options{}, &MPAFrame{Revision: 1}, nil)
	if p.k.State != rdma.Connecting {
		t.Errorf("%v after the request", p.k.State)
	}

	// The same ports are used again.
	p = plainPair()
	if p.c.Segment(0, &link.Frame{TCPFlags: tcp.SYN, TCPSeq: 0x70000000}, rdma.Ref{Number: 9}) {
		t.Error("a new SYN is not seen")
	}
	if !p.c.Closed() || p.closed != 1 {
		t.Error("not closed by a new connection")
	}
}

func TestImmediateAndAtomic(t *testing.T) {
	p := plainPair()
	p.peers[0].untagged(OpImmediate, 0, make([]byte, ImmediateLen))
	p.peers[0].untagged(OpAtomicRequest, 0, make([]byte, AtomicRequestLen))
	p.peers[1].untagged(OpAtomicResponse, 0, make([]byte, AtomicResponseLen))
	p.flush(0)
	p.flush(1)
	if len(p.log) != 0 || p.k.Sent[0].Atomics != 1 || p.k.Sent[1].Atomics != 0 {
		t.Errorf("%q %+v", p.log, p.k.Sent)
	}
}

func TestBadCRC(t *testing.T) {
	p := newPair(Options{}, &MPAFrame{Revision: 1, CRC: true}, &MPAFrame{Revision: 1, Reply: true})
	for i := range 3 {
		p.peers[0].untagged(OpSend, 0, []byte("call"))
		if i == 1 {
			s := p.peers[0].stream
			s[len(s)-6] ^= 1
		}
	}
	p.flush(0)
	if len(p.sends) != 3 || p.k.Sent[0].BadCRC != 1 {
		t.Errorf("%d Sends, %d wrong CRCs", len(p.sends), p.k.Sent[0].BadCRC)
	}
}

// TestGuessCRC finds out about CRCs without the setup.
func TestGuessCRC(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(i int, crc []byte)
		want   uint64
		state  crcState
	}{
		{"on", func(int, []byte) {}, 0, crcOn},
		{"on, two wrong", func(i int, crc []byte) { crc[0] ^= byte(i & 4) }, 2, crcOn},
		{"zero", func(_ int, crc []byte) { clear(crc) }, 0, crcOff},
		{"garbage", func(i int, crc []byte) { crc[0] ^= 0x55 }, 0, crcOff},
	} {
		rec := newRecorder()
		c := NewTracker(rec, Options{}).New(connection())
		p := newPeer(true, false, 1442)
		for i := range 6 {
			p.untagged(OpSend, 0, []byte("call"))
			test.change(i, p.stream[len(p.stream)-4:])
		}
		for i, at := range p.starts {
			c.halves[0].data(p.stream[at:at+28], rdma.Ref{Number: uint64(i + 1)})
		}
		if len(rec.sends) != 6 || c.c.Sent[0].BadCRC != test.want || c.t.BadCRC != test.want || c.crc != test.state {
			t.Errorf("%s: %d Sends, %d wrong, %d of the tracker, state %d", test.name, len(rec.sends), c.c.Sent[0].BadCRC, c.t.BadCRC, c.crc)
		}
	}
}

func TestVerdict(t *testing.T) {
	data := random(rand.New(rand.NewSource(1)), 1<<21)
	// Seen from the start, something else is known at once, if nothing else says that it should be iWARP.
	rec := newRecorder()
	elsewhere := connection()
	elsewhere.Ends[1].Port = 80
	c := NewTracker(rec, Options{}).New(elsewhere)
	w := &wire{c: c}
	w.segment(0, tcp.SYN, 0, nil)
	w.segment(0, 0, 0, []byte("MPA ID"))
	if c.Verdict() != Maybe {
		t.Error(c.Verdict())
	}
	w.segment(0, 0, 6, []byte("GET /"))
	if c.Verdict() != No {
		t.Error(c.Verdict())
	}
	w.segment(0, 0, 11, data[:1000])
	// In the middle it takes a while, longer on a port where iWARP is expected.
	for _, port := range []uint16{80, 20049} {
		k := connection()
		k.Ends[1].Port = port
		c := NewTracker(rec, Options{}).New(k)
		at := 0
		for c.Verdict() == Maybe && at+1448 < len(data) {
			c.halves[0].data(data[at:at+1448], rdma.Ref{Number: 1})
			at += 1448
		}
		if c.Verdict() != No || port == 80 && at > giveUp+1448 || port != 80 && (at < giveUpPort || at > giveUpPort+1448) {
			t.Errorf("port %d: %v after %d bytes", port, c.Verdict(), at)
		}
		if c.halves[0].buf != nil || c.halves[0].search != nil {
			t.Error("memory kept")
		}
		c.Close("", rdma.Ref{})
	}
	if len(rec.log) != 0 || rec.closed != 0 || len(rec.events) != 0 {
		t.Errorf("%q %d %v", rec.log, rec.closed, rec.events)
	}
	// Random data is never taken for iWARP.
	for at := 0; at+1448 < len(data); at += 1000 {
		if Sniff(data[at:at+1448], 1448) == Yes {
			t.Errorf("random data at %d is iWARP", at)
		}
	}
}

func TestSniff(t *testing.T) {
	call, write := unhex(t, fpduCall), unhex(t, fpduWrite)
	for _, test := range []struct {
		p      []byte
		length int
		want   Verdict
	}{
		{unhex(t, mpaRequestCRC), 32, Yes},
		{unhex(t, mpaReplyP2P), 32, Yes},
		{unhex(t, mpaReplyP2P)[:10], 32, Maybe},
		{[]byte("MPA ID Rex Frame..............."), 32, No},
		{call, len(call), Yes},
		{call[:40], len(call), Yes},
		{call[:19], len(call), No},
		{write, len(write), Yes},
		{write[:60], len(write), Yes},
		{write[:60], len(write) + 4, Maybe},
		{write[:len(write)-4], len(write) - 4, Maybe},
		{append(write, call...), len(write) + len(call), Yes},
		{append(call, 0), len(call) + 1, Yes},
		{append(write, 0), len(write) + 1, Maybe},
		{nil, 0, Maybe},
		{make([]byte, 100), 100, No},
	} {
		if got := Sniff(test.p, test.length); got != test.want {
			t.Errorf("%x of %d: %v, want %v", test.p, test.length, got, test.want)
		}
	}
}

// has compares the numbers of Sends, Writes and Reads.
func has(c *rdma.Counters, sends, writes, reads uint64) bool {
	return c.Sends == sends && c.Writes == writes && c.Reads == reads
}
