package nlm

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// FuzzServer gives several calls with arbitrary arguments, from two hosts, to NLM and NSM. Each
// is answered, the reply to it can be read, and when both hosts have restarted nothing is left.
//
// An input is a sequence of calls: a byte for program and version, one for the procedure, one for
// the host, and the length of the arguments in two bytes before them.
func FuzzServer(f *testing.F) {
	key := store.Key{1}
	fh := store.NewSeal(key).Append(nil, store.Handle{ID: 3, Generation: 1})
	programs := append(append([]xdr.Program(nil), nlm.Programs...), nsm.Programs...)
	const (
		v1 = iota
		v3
		v4
		monitor
	)
	add := func(b []byte, program, procedure, host int, args xdr.Message) []byte {
		a := args.Append(nil)
		b = append(b, byte(program), byte(procedure), byte(host))
		return append(binary.BigEndian.AppendUint16(b, uint16(len(a))), a...)
	}
	l4 := func(offset, length uint64) nlm.Nlm4Lock {
		return nlm.Nlm4Lock{CallerName: []byte("h"), Fh: fh, Oh: []byte("1@h"), Svid: 1, LOffset: offset, LLen: length}
	}
	l3 := nlm.NlmLock{CallerName: []byte("h"), Fh: fh, Oh: []byte("1@h"), Svid: 1, LOffset: 1<<32 - 1}
	lock := add(nil, v4, nlm.NLMPROC4_LOCK, 0, &nlm.Nlm4Lockargs{Exclusive: true, Alock: l4(10, 20)})
	f.Add(lock)
	f.Add(add(lock, v4, nlm.NLMPROC4_TEST, 1, &nlm.Nlm4Testargs{Alock: l4(0, 0)}))
	f.Add(add(lock, v3, nlm.NLM_TEST, 1, &nlm.NlmTestargs{Exclusive: true, Alock: nlm.NlmLock{CallerName: []byte("h"), Fh: fh}}))
	wait := add(lock, v4, nlm.NLMPROC4_LOCK, 1, &nlm.Nlm4Lockargs{Block: true, Exclusive: true, Alock: l4(15, 1)})
	f.Add(add(wait, v4, nlm.NLMPROC4_CANCEL, 1, &nlm.Nlm4Cancargs{Exclusive: true, Alock: l4(15, 1)}))
	f.Add(add(wait, v4, nlm.NLMPROC4_UNLOCK, 0, &nlm.Nlm4Unlockargs{Alock: l4(12, 5)}))
	f.Add(add(wait, monitor, nsm.SM_NOTIFY, 0, &nsm.StatChge{MonName: []byte("h"), State: 3}))
	f.Add(add(wait, v4, nlm.NLMPROC4_FREE_ALL, 0, &nlm.Nlm4Notify{Name: []byte("h")}))
	f.Add(add(nil, v1, nlm.NLM_LOCK, 0, &nlm.NlmLockargs{Block: true, Alock: l3}))
	f.Add(add(nil, v4, nlm.NLMPROC4_LOCK, 0, &nlm.Nlm4Lockargs{Alock: l4(2, 1<<64-1)}))
	f.Add(add(nil, v4, nlm.NLMPROC4_LOCK_MSG, 0, &nlm.Nlm4Lockargs{Alock: l4(2, 0), Reclaim: true}))
	share := add(nil, v4, nlm.NLMPROC4_SHARE, 0, &nlm.Nlm4Shareargs{Share: nlm.Nlm4Share{CallerName: []byte("h"), Fh: fh, Mode: nlm.FsmDRW, Access: nlm.FsaRW}})
	f.Add(add(share, v3, nlm.NLM3_SHARE, 1, &nlm.NlmShareargs{Share: nlm.NlmShare{CallerName: []byte("h"), Fh: fh, Mode: 9, Access: 7}}))
	f.Add(add(nil, monitor, nsm.SM_MON, 0, &nsm.Mon{}))

	f.Fuzz(func(t *testing.T, b []byte) {
		st := memory.New(memory.Options{Size: 1 << 20, Generation: 1, HandleKey: key})
		var a store.Attr
		if _, err := st.Create(&store.Cred{}, st.Root(), []byte("file"), &store.Create{Set: store.SetAttr{Mask: store.SetMode, Mode: 0o666}}, &a, &store.Wcc{}); err != nil {
			t.Fatal(err)
		}
		table := state.New(state.Options{})
		s := New(st, table, Options{})
		rpc := nfsserver.New(nfsserver.Options{Replies: -1})
		for _, p := range s.Programs() {
			rpc.Register(p)
		}
		hosts := [2]*nfstest.Direct{nfstest.NewDirect(rpc), nfstest.NewDirect(rpc)}
		hosts[1].Name.Remote = netip.MustParseAddrPort("192.0.2.9:700")
		for xid := uint32(1); len(b) >= 5 && xid < 64; xid++ {
			p, procedure, host := &programs[int(b[0])%len(programs)], uint32(b[1]), hosts[b[2]%2]
			n := min(int(binary.BigEndian.Uint16(b[3:])), len(b)-5)
			h := oncrpc.Call{XID: xid, RPCVersion: 2, Program: p.Number, Version: p.Version, Procedure: procedure, Cred: nfstest.Sys(1, 1)}
			call := &transport.Call{XID: xid}
			call.Stream = append(h.Append(nil), b[5:5+n]...)
			b = b[5+n:]
			if err := host.Do(context.Background(), call); err != nil {
				t.Fatalf("%s %d: %v", p.Name, procedure, err)
			}
			known := p.Procedure(procedure)
			var reply oncrpc.Reply
			if err := reply.Decode(call.Reply.Stream, len(call.Reply.Stream)); err != nil {
				t.Fatal(err)
			}
			if !reply.Succeeded() || known == nil {
				continue
			}
			if err := nfstest.ParseReply(&call.Reply, xid, known.NewResult()); err != nil {
				t.Errorf("%s %s: %v", p.Name, known.Name, err)
			}
		}
		s.mu.Lock()
		for _, h := range s.hosts {
			s.release(h)
		}
		s.mu.Unlock()
		if c := s.Counts(); c.Owners != 0 || c.Waiters != 0 {
			t.Errorf("left: %+v", c)
		}
		if c := table.Counts(); c.Files != 0 || c.Ranges != 0 {
			t.Errorf("left: %+v", c)
		}
		s.mu.Lock()
		for _, h := range s.hosts {
			s.forgetHost(h)
		}
		s.mu.Unlock()
		rpc.Close()
		s.Close()
		if n := table.Outsiders.Charged(); n != 0 {
			t.Errorf("%d bytes are still counted", n)
		}
		table.Close()
		_ = st.Close()
	})
}
