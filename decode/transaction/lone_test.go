package transaction

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/snapshot"
)

// counter is a MessageHandler that knows how many calls of each kind have been open at once, as analyze/session does. Those of
// other programs mean nothing to it.
type counter struct {
	lone *Lone // nil: it is told of all calls
	open map[*Transaction]opened
	most map[kind]int
	log  []string // what it was told
	bad  string
}

const others = 100227

type kind struct {
	connection       int
	from             rdma.Side
	program, version uint32
}

type opened struct {
	kind
	serial uint64
}

// sparing is a counter that can do without lone calls.
type sparing struct{ *counter }

func (c sparing) SetLone(l *Lone) { c.lone = l }

func newCounter() *counter {
	return &counter{open: make(map[*Transaction]opened), most: make(map[kind]int)}
}

func (c *counter) Message(tx *Transaction, reply bool, s *rdma.Send) {
	c.log = append(c.log, fmt.Sprint(tx.serial, tx.XID, reply, tx.Named, tx.Program, tx.Version, *s))
	o, known := c.open[tx]
	switch {
	case tx.Program == others:
	case reply && known && o.serial == tx.serial:
		delete(c.open, tx)
		if len(c.open) == 0 && c.lone != nil {
			c.lone.Spare(tx)
		}
	case reply:
	case known && o.serial != tx.serial:
		c.bad = fmt.Sprintf("%d is open, and so is %d in its place", tx.serial, o.serial)
	case !known && !tx.replied:
		k := kind{tx.Connection.Resolve().ID, tx.From, tx.Program, tx.Version}
		c.open[tx] = opened{k, tx.serial}
		n := 0
		for _, o := range c.open {
			if o.kind == k {
				n++
			}
		}
		c.most[k] = max(c.most[k], n)
	}
}

// ended is Options.Ended.
func (c *counter) ended(tx *Transaction) {
	if _, known := c.open[tx]; known {
		c.log = append(c.log, fmt.Sprint(tx.serial, " ended"))
		delete(c.open, tx)
	}
}

// serials returns the serial numbers of the open calls.
func (c *counter) serials() []uint64 {
	var list []uint64
	for _, o := range c.open {
		list = append(list, o.serial)
	}
	slices.Sort(list)
	return list
}

// stage lets a Tracker see calls, replies and what else happens, on a few connections.
type stage struct {
	t      *Tracker
	c      *counter
	conns  [3]*rdma.Connection
	number int // connections so far
	ref    rdma.Ref
	xid    uint32
	calls  []called
	tags   []sent
	last   called // answered last
}

type called struct {
	c    *rdma.Connection
	from rdma.Side
	data []byte
}

func newStage(c *counter, h MessageHandler) *stage {
	s := &stage{c: c, xid: 100}
	s.t = NewTracker(Options{Open: 12, Held: 8, Messages: h, Ended: c.ended}, func(*Transaction) {})
	return s
}

func (s *stage) conn(i int) *rdma.Connection {
	if s.conns[i] == nil {
		s.number++
		s.conns[i] = &rdma.Connection{ID: s.number, Fabric: rdma.RoCEv2, State: rdma.Established, First: s.ref}
	}
	return s.conns[i]
}

func (s *stage) send(c *rdma.Connection, from rdma.Side, data []byte) {
	s.ref.Number++
	s.ref.Time += 1000
	tag := s.t.Send(c, &rdma.Send{From: from, Data: data, Length: len(data), First: s.ref, Last: s.ref, Packets: 1})
	if tag != (rdma.Tag{}) {
		s.tags = append(s.tags, sent{c, from, tag})
	}
}

// words is a message of RPC behind a header.
func words(xid uint32, list ...uint32) []byte {
	h := rpcrdma.Header{Version: rpcrdma.Version1, XID: xid, Credits: 8, Type: rpcrdma.TypeMsg}
	b := binary.BigEndian.AppendUint32(h.Append(nil), xid)
	for _, w := range list {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

func (s *stage) call(c *rdma.Connection, from rdma.Side, program, version uint32) {
	s.xid++
	x := called{c, from, words(s.xid, 0, 2, program, version, 1, 0, 0, 0, 0)}
	s.calls = append(s.calls, x)
	s.send(c, from, x.data)
}

func (s *stage) reply(i int) {
	if len(s.calls) == 0 {
		return
	}
	i %= len(s.calls)
	x := s.calls[i]
	s.calls = slices.Delete(s.calls, i, i+1)
	x.data = words(binary.BigEndian.Uint32(x.data), 1, 0, 0, 0, 0, 0)
	s.last = x
	s.send(x.c, x.from.Other(), x.data)
}

func (s *stage) acked(back int) {
	if n := len(s.tags); back < n {
		x := s.tags[n-1-back]
		s.ref.Number++
		s.ref.Time += 1000
		s.t.SendAcked(x.c, x.from, x.tag, s.ref)
	}
}

// step does what a byte says: most of the time a call and its reply.
func (s *stage) step(b byte) {
	arg := int(b & 15)
	i := arg % 3
	c, from := s.conn(i), rdma.Side(arg>>3)
	switch b >> 4 {
	default:
		s.call(c, from, 100003, 3)
		if arg&4 != 0 {
			s.acked(0)
		}
		s.reply(len(s.calls) - 1)
		if arg&2 != 0 {
			s.acked(0)
		}
	case 5:
		s.call(c, from, 100003, 3+uint32(arg&1))
		s.reply(len(s.calls) - 1)
	case 4:
		s.call(s.conn(0), 0, [...]uint32{others, 0, 100005, 100003}[arg>>2], uint32(arg&1)*3)
		if arg&2 != 0 {
			s.reply(len(s.calls) - 1)
		}
	case 6:
		s.call(c, from, 100003, 3)
	case 7:
		s.reply(arg)
	case 8: // the same again
		if n := len(s.calls); n > 0 {
			x := s.calls[arg%n]
			s.send(x.c, x.from, x.data)
		}
	case 9:
		if x := s.last; x.c != nil {
			s.send(x.c, x.from.Other(), x.data)
		}
	case 10: // no message of RPC; one with a Read list
		if arg < 8 {
			s.send(c, from, make([]byte, 64))
			break
		}
		s.xid++
		h := rpcrdma.Header{Version: rpcrdma.Version1, XID: s.xid, Credits: 8, Reads: []rpcrdma.ReadSegment{{Position: 60, Segment: rpcrdma.Segment{Handle: s.xid, Length: 4096}}}}
		x := called{c, from, append(h.Append(nil), words(s.xid, 0, 2, 100003, 3, 7, 0, 0, 0, 0)[28:]...)}
		s.calls = append(s.calls, x)
		s.send(c, from, x.data)
	case 11:
		s.t.Closed(c, s.ref)
		s.forget(c)
		s.conns[i] = nil
	case 12: // two connections prove to be one
		into := s.conn((i + 1) % 3)
		if into == c {
			break
		}
		side := rdma.Side(arg >> 2 & 1)
		c.MergedInto, c.Turned = into, side != 0
		s.t.Merged(into, side, c, 0)
		s.forget(c)
		s.conns[i] = nil
	case 13:
		s.ref.Time += 3e9
	case 14:
		s.acked(arg)
	case 15: // the state is saved
		s.t.Snapshot(snapshot.NewPlan(""))
	}
}

// forget forgets what came on a connection that is no more.
func (s *stage) forget(c *rdma.Connection) {
	s.calls = slices.DeleteFunc(s.calls, func(x called) bool { return x.c == c })
	s.tags = slices.DeleteFunc(s.tags, func(x sent) bool { return x.c == c })
	if s.last.c == c {
		s.last = called{}
	}
}

// checkLone runs a script before a handler that is told of all calls and before one that can do without some, and compares what they
// know. It returns how many calls the second was spared.
func checkLone(t *testing.T, script []byte) (spared int) {
	t.Helper()
	all, some := newCounter(), newCounter()
	a, b := newStage(all, all), newStage(some, sparing{some})
	for n, x := range script {
		a.step(x)
		b.step(x)
		if all.bad != "" || some.bad != "" {
			t.Fatalf("step %d of %x: %s%s", n, script, all.bad, some.bad)
		}
		kept := b.t.lone.call
		if want := all.serials(); kept == 0 && !slices.Equal(some.serials(), want) || kept != 0 && !slices.Equal(want, []uint64{kept}) {
			t.Fatalf("step %d of %x: %d are open, not %d, and %d is kept back", n, script, some.serials(), want, kept)
		} else if kept != 0 && x>>4 == 15 {
			t.Fatalf("step %d of %x: %d is kept back while the state is saved", n, script, kept)
		}
		if !maps.Equal(all.most, some.most) {
			t.Fatalf("step %d of %x: at most open %v, not %v", n, script, some.most, all.most)
		}
	}
	a.t.Flush()
	b.t.Flush()
	if len(some.open) > 0 || b.t.lone.call != 0 || b.t.lone.send.Data != nil {
		t.Fatalf("%x: at the end %d are open, %+v", script, some.serials(), b.t.lone)
	}
	j := 0
	for i := 0; i < len(all.log); i++ {
		if j < len(some.log) && all.log[i] == some.log[j] {
			j++
			continue
		}
		var serial, xid, next, nextXID uint64
		var reply, nextReply bool
		fmt.Sscan(all.log[i], &serial, &xid, &reply)
		if i++; i < len(all.log) {
			fmt.Sscan(all.log[i], &next, &nextXID, &nextReply)
		}
		if serial == 0 || next != serial || reply || !nextReply {
			t.Fatalf("%x: message %d is missing: %s", script, i, all.log[i-1])
		}
		spared++
	}
	if j < len(some.log) {
		t.Fatalf("%x: nobody else was told %s", script, some.log[j])
	}
	return spared
}

// TestLone compares them for what happens in any order.
func TestLone(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	spared := 0
	for range 2000 {
		script := make([]byte, 4+rng.IntN(60))
		for i := range script {
			script[i] = byte(rng.Uint32())
			if rng.IntN(3) == 0 { // a call and its reply, more often
				script[i] &= 0x17
			}
		}
		spared += checkLone(t, script)
	}
	if spared < 5000 {
		t.Errorf("%d calls were spared", spared)
	}
}

func FuzzLone(f *testing.F) {
	for _, script := range []string{
		"\x06\x06\x06\x60\x70",     // a call whose reply comes by itself
		"\x06\x06\x60\x60\x70\x70", // two at once
		"\x06\x06\x60\x80\x70\x90", // called again, answered again
		"\x06\x06\x60\xb0\x06\x60\xd0\x06",
		"\x01\x06\x06\x60\xc0\x61\x61\x71\x71", // a connection becomes part of another one while a call is kept back
		"\x06\x06\x60\xf0\x70\x06\xa0\x06\xa8\x70",
		"\x06\x06\x57\x56\x06\x06\x0e\x0e",
	} {
		f.Add([]byte(script))
	}
	f.Fuzz(func(t *testing.T, script []byte) { checkLone(t, script[:min(len(script), 128)]) })
}

// TestLoneSpared: most calls are spared if one at a time is open, on several connections by turns, too.
func TestLoneSpared(t *testing.T) {
	for _, c := range []struct {
		script string
		spared int
	}{
		{"\x06\x06\x06\x06\x06", 4},
		{"\x06\x07\x06\x07\x06\x07", 4},
		{"\x00\x00\x00\x00", 3},             // nothing is acknowledged
		{"\x06\x60\x60\x70\x70", 0},         // several are open
		{"\x06\x06\xa0\x06\x06", 2},         // what is no message is in between
		{"\x43\x47\x4b\x4f\x4f\x4b\x4f", 1}, // several programs
		{"\x50\x53\x53\x53\x50", 2},         // two versions on one connection: the last counts
	} {
		if got := checkLone(t, []byte(c.script)); got != c.spared {
			t.Errorf("%x: %d calls were spared, not %d", c.script, got, c.spared)
		}
	}
}

// TestLoneSetup: as long as the reply to the setup of a connection may still come, and with it another address, no call is spared.
func TestLoneSetup(t *testing.T) {
	c := newCounter()
	s := newStage(c, sparing{c})
	k := s.conn(0)
	k.Setup[0].Message = rdma.SetupREQ
	for n, want := range []int{2, 4, 6, 8, 8, 8} {
		if n >= 3 {
			k.Setup[1].Message = rdma.SetupREP
		}
		s.step(0x06)
		if len(c.log) != want {
			t.Errorf("%d messages after %d calls, not %d", len(c.log), n+1, want)
		}
	}
}
