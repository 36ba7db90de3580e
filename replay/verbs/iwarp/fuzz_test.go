package iwarp

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// FuzzStream gives a connection any bytes after MPA: it must end without a
// panic, and change nothing but its region and its receives.
func FuzzStream(f *testing.F) {
	const stag = 0x00000100
	seed := func(mode byte, ulpdus ...[]byte) {
		var b []byte
		for _, u := range ulpdus {
			if mode&2 != 0 {
				b = iwarp.AppendMarkedFPDU(b, u, mode&1 != 0, uint64(len(b)))
			} else {
				b = iwarp.AppendFPDU(b, u, mode&1 != 0)
			}
		}
		f.Add(mode, b)
	}
	for mode := range byte(4) {
		seed(mode, untagged(iwarp.OpSend, true, 1, 0, 1, 2, 3), untagged(iwarp.OpSendSolicited, true, 2, 0))
		seed(mode, untagged(iwarp.OpSend, false, 1, 0, make([]byte, 700)...), untagged(iwarp.OpSend, true, 1, 700, 9))
		seed(mode, tagged(iwarp.OpWrite, true, stag, 8, make([]byte, 100)...), readRequest(1, 50, stag, 8), readRequest(2, 0, 0, 0))
		seed(mode, tagged(iwarp.OpReadResponse, false, 0x201, 0, make([]byte, 60)...), tagged(iwarp.OpReadResponse, true, 0x201, 60, make([]byte, 40)...))
		seed(mode, untagged(iwarp.OpTerminate, true, 1, 0, iwarp.AppendTerminate(nil, 0, 1, 2, 20, tagged(iwarp.OpWrite, true, 1, 2), nil)...))
	}
	p, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, mode byte, b []byte) {
		ours, theirs := net.Pipe()
		mem := make([]byte, 1200)
		buf := make([]byte, 1200)
		sink := make([]byte, 1200)
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
			io.Copy(theirs, bytes.NewReader(b))
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
