package run_test

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// attacker is a peer that answers calls over RDMA as it likes.
type attacker struct {
	verbs.Conn
	bufs [64][4096]byte
}

// send posts a Send.
func (a *attacker) send(b []byte) {
	_ = a.Post(verbs.WorkRequest{Op: verbs.OpSend, Signaled: true, Local: [][]byte{b}})
}

// touch posts an RDMA Write or Read of the memory of the client.
func (a *attacker) touch(op verbs.Op, handle uint32, offset uint64, n int) {
	_ = a.Post(verbs.WorkRequest{Op: op, Handle: handle, Offset: offset, Signaled: true, Local: [][]byte{make([]byte, n)}})
}

// offer is what a call lets its server do.
type offer struct {
	XID   uint32
	Reply []segment
}

// segment is a part of the Reply chunk.
type segment struct {
	Handle, Length uint32
	Offset         uint64
}

// offered reads the header of a call whose Read list and Write list are empty (RFC 8166, section 4.2).
func offered(b []byte) *offer {
	o := &offer{XID: binary.BigEndian.Uint32(b)}
	if at := 16; binary.BigEndian.Uint64(b[at:]) == 0 && binary.BigEndian.Uint32(b[at+8:]) == 1 {
		for s := b[at+16:][:16*binary.BigEndian.Uint32(b[at+12:])]; len(s) > 0; s = s[16:] {
			o.Reply = append(o.Reply, segment{binary.BigEndian.Uint32(s), binary.BigEndian.Uint32(s[4:]), binary.BigEndian.Uint64(s[8:])})
		}
	}
	return o
}

// serve calls answer for each message of the client.
func (a *attacker) serve(answer func(a *attacker, h *offer)) {
	defer a.Close() //nolint:errcheck // the client may have closed it
	var batch [16]verbs.Completion
	for {
		for _, d := range batch[:a.Poll(batch[:])] {
			if d.Op != verbs.OpRecv || d.Status != verbs.StatusSuccess {
				continue
			}
			answer(a, offered(a.bufs[d.ID][:d.Length]))
			_ = a.PostRecv(verbs.RecvRequest{ID: d.ID, Buffer: a.bufs[d.ID][:]})
		}
		if a.Wait() != nil {
			return
		}
	}
}

// attack makes a server of it, which a client reaches over a fabric.
func attack(t *testing.T, fabric string, answer func(a *attacker, h *offer)) func(ctx context.Context) (transport.Requester, error) {
	t.Helper()
	var p verbs.Provider
	f, c, at, err := providers.Pair(providers.Options{Name: fabric}, func(o *providers.Options) {
		o.Wrapped = func(inner verbs.Provider) verbs.Provider { p = inner; return inner }
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Listen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = l.Close(), c.Close(), f.Close() })
	go func() {
		for {
			req, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			a := new(attacker)
			p := verbs.Params{RNRRetryCount: 7}
			for i := range a.bufs {
				p.Recvs = append(p.Recvs, verbs.RecvRequest{ID: uint64(i), Buffer: a.bufs[i][:]})
			}
			if a.Conn, err = req.Accept(context.Background(), p); err == nil {
				go a.serve(answer)
			}
		}
	}()
	return func(ctx context.Context) (transport.Requester, error) {
		return c.Dial(ctx, l.Addr(), func(o *endpoint.Options) { o.Timeout, o.ReplyChunkAlways = 100*time.Millisecond, true })
	}
}

// message is a message of RPC over RDMA of these words.
func message(list ...uint32) (b []byte) {
	for _, w := range list {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// TestHostilePeers: whatever a server sends over RDMA, the run ends, and no call that has results counts as answered.
func TestHostilePeers(t *testing.T) {
	const accepted = 1
	reply := func(xid uint32, results ...uint32) []byte {
		return message(append([]uint32{xid, 1, 32, 0, 0, 0, 0, xid, accepted, 0, 0, 0, 0}, results...)...)
	}
	w := load(t, sample(t, "rocev2-nfs3-basic"), planner.Options{Payload: plan.Pattern})
	for i, x := range []struct {
		name   string
		answer func(a *attacker, h *offer)
	}{
		{"silence", func(*attacker, *offer) {}},
		{"an end", func(a *attacker, _ *offer) { _ = a.Close() }},
		{"an empty message", func(a *attacker, _ *offer) { a.send(nil) }},
		{"a message of a word", func(a *attacker, h *offer) { a.send(message(h.XID)) }},
		{"more messages than receives", func(a *attacker, h *offer) {
			for range 500 {
				a.send(message(h.XID))
			}
		}},
		{"a longer message than a receive", func(a *attacker, h *offer) { a.send(make([]byte, 1<<20)) }},
		{"zeros", func(a *attacker, _ *offer) { a.send(make([]byte, 4096)) }},
		{"ones", func(a *attacker, _ *offer) { a.send(slices.Repeat([]byte{0xff}, 4096)) }},
		{"ERR_CHUNK", func(a *attacker, h *offer) { a.send(message(h.XID, 1, 32, 4, 2)) }},
		{"ERR_VERS", func(a *attacker, h *offer) { a.send(message(h.XID, 1, 32, 4, 1, 0, 0xffffffff)) }},
		{"4294967295 credits and no results", func(a *attacker, h *offer) {
			b := reply(h.XID)
			binary.BigEndian.PutUint32(b[8:], 0xffffffff)
			a.send(b)
		}},
		{"a denial cut off", func(a *attacker, h *offer) { a.send(message(h.XID, 1, 32, 0, 0, 0, 0, h.XID, 1, 1, 1)) }},
		{"a verifier of 4 GiB", func(a *attacker, h *offer) {
			a.send(message(h.XID, 1, 32, 0, 0, 0, 0, h.XID, 1, 0, 0, 0xffffffff, 0))
		}},
		{"results that lie about their length", func(a *attacker, h *offer) {
			a.send(reply(h.XID, 0, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff))
		}},
		{"an answer to another call", func(a *attacker, h *offer) { a.send(reply(h.XID^0x55555555, 0)) }},
		{"a Write list of 4 Gi chunks", func(a *attacker, h *offer) {
			a.send(message(h.XID, 1, 32, 0, 0, 1, 0xffffffff, 1, 1, 0, 1))
		}},
		{"a Reply chunk of its own", func(a *attacker, h *offer) {
			a.send(message(h.XID, 1, 32, 1, 0, 0, 1, 1, 7, 0xffffffff, 0xffffffff, 0xffffffff))
		}},
		{"RDMA_NOMSG without chunks", func(a *attacker, h *offer) { a.send(message(h.XID, 1, 32, 1, 0, 0, 0)) }},
		{"a call instead of a reply", func(a *attacker, h *offer) {
			a.send(message(h.XID, 1, 32, 0, 0, 0, 0, h.XID, 0, 2, 100003, 3, 0, 0, 0, 0, 0))
		}},
		{"an RDMA Write to a handle it was not given", func(a *attacker, h *offer) { a.touch(verbs.OpWrite, 0xdeadbeef, 0, 4096) }},
		{"an RDMA Read of a handle it was not given", func(a *attacker, h *offer) { a.touch(verbs.OpRead, 1, 0, 4096) }},
		{"an RDMA Write beyond what was offered", func(a *attacker, h *offer) {
			for _, s := range h.Reply {
				a.touch(verbs.OpWrite, s.Handle, s.Offset, int(s.Length)+4096)
			}
		}},
		{"an RDMA Read of what is to be written", func(a *attacker, h *offer) {
			for _, s := range h.Reply {
				a.touch(verbs.OpRead, s.Handle, s.Offset, int(s.Length))
			}
		}},
	} {
		for k, fabric := range []string{"iwarp", "rocev2"} {
			if testing.Short() && (i+k)%4 != 0 {
				continue
			}
			t.Run(fabric+"/"+x.name, func(t *testing.T) {
				t.Parallel()
				dial := attack(t, fabric, x.answer)
				began := time.Now()
				r, err := run.Run(t.Context(), w, run.Options{
					Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) { return dial(ctx) },
					Access: func(ctx context.Context) (*run.Access, error) {
						return good(t, w.Version())
					},
					Directory: "/replay", Write: true, Prepare: true, Timing: run.Fast, Timeout: 100 * time.Millisecond, MaxOps: 4, Retries: 1,
				})
				if took := time.Since(began); took > time.Minute {
					t.Errorf("%s", took)
				}
				if err != nil {
					return
				}
				if null := 1; r.Explained() || r.Totals[verdict.Same.String()]+r.Totals[verdict.Equivalent.String()] > null {
					t.Errorf("%v", r.Totals)
				}
			})
		}
	}
}

// good is access to a server that is not hostile, over TCP.
func good(t *testing.T, version string) (*run.Access, error) {
	s := providers.NewServer(emptyStore(), providers.ServerOptions{})
	f, c, at, err := providers.Pair(providers.Options{Name: "tcp"}, nil)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _, _, _ = c.Close(), f.Close(), s.Close() })
	l, err := f.Listen(t.Context(), at, s)
	if err != nil {
		return nil, err
	}
	r, err := c.Dial(t.Context(), l.Addr(), nil)
	return &run.Access{NFS: r, Version: version, Cred: client.Sys("replay", 0, 0)}, err
}
