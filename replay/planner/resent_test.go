package planner

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// reconnect sends the following calls on another connection of the same client, as copies of calls that came on this one.
func (s *scene) reconnect() {
	s.address("192.0.2.1")
	s.copies = true
}

// sendsAgain is a CREATE without a reply, which is sent again twice, a REMOVE that waits for it, and a CREATE that is sent again although it was
// answered.
func sendsAgain(t *testing.T, answered []Resent) (*scene, *loaded) {
	t.Helper()
	s := newScene(t)
	s.b.resent = newResent(answered)
	create := func(name string, replied bool) {
		a := &nfs3.CREATE3args{Where: in3("root", name), How: nfs3.Createhow3{Mode: nfs3.GUARDED}}
		if replied {
			s.call(3, 8, a, &nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: post3(name)}})
		} else {
			s.call(3, 8, a, nil)
		}
	}
	create("f", false)
	s.reconnect()
	s.xid--
	create("f", false)
	s.reconnect()
	s.xid--
	create("f", true)
	s.copies = false
	s.remove3("root", "f", nfs3.NFS3_OK)
	create("g", true)
	s.reconnect()
	s.xid--
	create("g", true)
	s.copies = false
	s.lookup3("root", "g", "g")
	return s, s.plan()
}

// TestSentAgain: of a call that was sent again, the first copy with a reply is replayed, once that is known; until then the first one.
func TestSentAgain(t *testing.T) {
	s, first := sendsAgain(t, nil)
	first.want(t, "ops", len(first.ops), 4)
	first.want(t, "skips", len(first.skips), 3)
	first.want(t, "time without a reply", first.ops[0].Latency, int64(-1))
	first.want(t, "copies with a reply", len(s.b.resent.found), 1)
	first.want(t, "before REMOVE", first.ops[1].After, 0)

	again, l := sendsAgain(t, s.b.resent.found)
	l.want(t, "ops", len(l.ops), 4)
	l.want(t, "skips", len(l.skips), 3)
	l.want(t, "class", l.ops[0].Class, plan.Exact)
	l.want(t, "time", l.ops[0].Latency, int64(1000))
	l.want(t, "connection", l.ops[0].Connection, 3)
	l.want(t, "copies with a reply", len(again.b.resent.found), 0)
	l.want(t, "before REMOVE", l.ops[1].After, 1)
	l.want(t, "sent for the first time", l.ops[0].Time-l.ops[0].Before, first.ops[0].Time)
	l.want(t, "not sent before", l.ops[2].Before, int64(0))
	l.want(t, "first copies that are remembered", len(again.b.resent.first), 0)
	if l.ops[0].Expect == nil {
		t.Error("the outcome is not known")
	}
	for k, n := range again.b.resent.answered {
		if n != 0 {
			t.Errorf("%v is left out %d times more", k, n)
		}
	}
}

// TestSameXIDs: a client may count its calls from 1 on each connection. The same call there is another one.
func TestSameXIDs(t *testing.T) {
	s := newScene(t)
	for range 3 {
		s.lookup3("root", "f", "F")
		s.xid--
		s.address("192.0.2.1")
	}
	l := s.plan()
	l.want(t, "ops", len(l.ops), 3)
	l.want(t, "skips", len(l.skips), 0)
}

// TestManySent: calls are remembered over more than a generation of them, in bounded memory.
func TestManySent(t *testing.T) {
	r := newResent(nil)
	for x := range uint32(3*maxSent + 10) {
		r.put(retry{xid: x}, false)
		if len(r.newer) > maxSent || len(r.older) > maxSent {
			t.Fatal("too many")
		}
	}
	if seen, _ := r.was(retry{xid: 2*maxSent + 5}); !seen {
		t.Error("a call within the last generation is forgotten")
	}
	if seen, _ := r.was(retry{xid: 5}); seen {
		t.Error("an old call is remembered")
	}
}

// lacking is a capture without a packet.
type lacking struct {
	capture.Reader
	number uint64
}

func (l lacking) Read(b *capture.Batch) error {
	err := l.Reader.Read(b)
	b.Packets = slices.DeleteFunc(b.Packets, func(p capture.Packet) bool { return p.Number == l.number })
	return err
}

// TestAnsweredLate: Build says that a copy has the reply, and makes a plan with that when it is called again.
func TestAnsweredLate(t *testing.T) {
	build := func(opt Options) (*plan.Summary, error) {
		r, err := capture.Open([]string{"../../samples/rocev2-nfs3-longcall.pcap"}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		// The reply to a call that is sent twice more.
		return Build(context.Background(), lacking{r, 109}, filepath.Join(t.TempDir(), "a.plan"), decode.Options{}, opt)
	}
	sum, err := build(Options{Retry: true})
	var late *LateError
	if sum != nil || !errors.As(err, &late) || len(late.Answered) != 1 || len(late.Same) != 0 {
		t.Fatalf("%v, %v", sum, err)
	}
	if sum, err = build(Options{Retry: true, Answered: late.Answered}); err != nil || sum.Ops.Inferred != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if sum, err = build(Options{}); err != nil || sum.Ops.Inferred != 1 {
		t.Fatalf("read once: %+v, %v", sum, err)
	}
}
