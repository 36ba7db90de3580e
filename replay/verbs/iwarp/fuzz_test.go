package iwarp

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// FuzzStream is a peer that sends changed segments after MPA: a connection must
// end without a panic, and change nothing but its region and its receives.
//
// mode chooses CRC (bit 0), markers (bit 1), and which segments to begin with;
// with bit 7 the frames around them are changed too, CRC and all.
func FuzzStream(f *testing.F) {
	const stag = 0x00000100
	seeds := [][][]byte{
		{untagged(iwarp.OpSend, true, 1, 0, 1, 2, 3), untagged(iwarp.OpSendSolicited, true, 2, 0)},
		{untagged(iwarp.OpSend, false, 1, 0, make([]byte, 700)...), untagged(iwarp.OpSend, true, 1, 700, 9)},
		{tagged(iwarp.OpWrite, true, stag, 8, make([]byte, 100)...), readRequest(1, 50, stag, 8), readRequest(2, 0, 0, 0)},
		{tagged(iwarp.OpReadResponse, false, 0x201, 0, make([]byte, 60)...), tagged(iwarp.OpReadResponse, true, 0x201, 60, make([]byte, 40)...)},
		{untagged(iwarp.OpTerminate, true, 1, 0, iwarp.AppendTerminate(nil, 0, 1, 2, 20, tagged(iwarp.OpWrite, true, 1, 2), nil)...)},
	}
	var all [][]byte
	for _, s := range seeds[:4] {
		all = append(all, s...)
	}
	seeds = append(seeds, all)
	for mode := range byte(4 * len(seeds)) {
		f.Add(mode, []byte{})
		f.Add(mode|0x80, []byte{})
	}
	p, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	mem, buf, sink := make([]byte, 1200), make([]byte, 1200), make([]byte, 1200)
	f.Fuzz(func(t *testing.T, mode byte, program []byte) {
		clear(mem)
		clear(buf)
		clear(sink)
		list := seeds[int(mode>>2&31)%len(seeds)]
		if mode&0x80 == 0 {
			list = mutate.Units(list, program, DefaultULPDU)
		}
		var frames [][]byte
		at := uint64(0)
		for _, u := range list {
			var b []byte
			if mode&2 != 0 {
				b = iwarp.AppendMarkedFPDU(nil, u, mode&1 != 0, at)
			} else {
				b = iwarp.AppendFPDU(nil, u, mode&1 != 0)
			}
			at += uint64(len(b))
			frames = append(frames, b)
		}
		if mode&0x80 != 0 {
			frames = mutate.Units(frames, program, 4096)
		}
		ours, theirs := net.Pipe()
		a := &agreement{initiator: true, crc: mode&1 != 0, markers: mode&2 != 0, ird: 4, ord: 4, maxULPDU: DefaultULPDU}
		c, err := p.start(&socket{Conn: ours, p: p}, &verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: buf[100:1100]}, {}}}, a)
		if err != nil {
			t.Fatal(err)
		}
		c.regions.mu.Lock()
		c.regions.byTag[stag] = &region{mem: mem[100:1100], access: verbs.RemoteRead | verbs.RemoteWrite}
		c.regions.mu.Unlock()
		c.mu.Lock()
		c.tx.sink = 0x200
		c.mu.Unlock()
		if err := c.Post(verbs.WorkRequest{Op: verbs.OpRead, Signaled: true, Handle: 1, Local: [][]byte{sink[100:150], sink[150:200]}}); err != nil {
			t.Fatal(err)
		}
		go func() {
			io.Copy(theirs, bytes.NewReader(bytes.Join(frames, nil)))
			theirs.Close()
		}()
		go io.Copy(io.Discard, theirs)
		for c.Wait() == nil {
			var d [4]verbs.Completion
			c.Poll(d[:])
		}
		c.Close()
		ours.Close()
		for _, g := range [][]byte{mem[:100], mem[1100:], buf[:100], buf[1100:], sink[:100], sink[200:]} {
			for i := range g {
				if g[i] != 0 {
					t.Fatal("memory that is not open was written")
				}
			}
		}
	})
}

// conversation is a socket whose peer has said everything already.
type conversation struct {
	io.Reader
	io.Writer
}

// FuzzSetup gives both roles any bytes as the peer's MPA frame.
func FuzzSetup(f *testing.F) {
	for _, m := range []iwarp.MPAFrame{
		{Revision: 1, Private: []byte("abc")},
		{Revision: 2, Enhanced: true, IRD: 7, ORD: 0x3fff, PeerToPeer: true, RTRWrite: true},
		{Reply: true, Revision: 2, Enhanced: true, IRD: 7, ORD: 9, PeerToPeer: true, RTRRead: true, CRC: true, Markers: true},
		{Reply: true, Reject: true, Revision: 1, Private: []byte("no")},
	} {
		f.Add(m.Append(nil))
	}
	p, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	check := func(t *testing.T, a *agreement, err error) {
		if err != nil {
			return
		}
		if a.ird < 0 || a.ird > maxReads || a.ord < 0 || a.ord > maxReads || len(a.private) > iwarp.MPAMaxPrivate {
			t.Errorf("%+v", a)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := p.request(conversation{bytes.NewReader(b), io.Discard}, &verbs.Params{}, 2)
		check(t, a, err)
		var m iwarp.MPAFrame
		if receive(bytes.NewReader(b), &m) == nil && !m.Reply {
			a, err := p.reply(io.Discard, &m, &verbs.Params{})
			check(t, a, err)
		}
	})
}
