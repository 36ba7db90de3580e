package nfs4

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// wire sends COMPOUNDs over TCP.
type wire struct {
	r    transport.Requester
	uid  uint32
	id   [16]byte
	slot uint32
	seq  uint32
}

func (w *wire) do(ctx context.Context, ops ...nfs4.Op) (*nfs4.CompoundRes, error) {
	a := nfs4.CompoundArgs{Minorversion: 2}
	if w.id != [16]byte{} {
		w.seq++
		a.Ops = append(a.Ops, sequenceOp(w.id, w.slot, w.seq, w.seq%2 == 0))
	}
	a.Ops = append(a.Ops, ops...)
	c := transport.Call{MaxReply: 1 << 21}
	c.Stream = append(header(0, w.uid), a.Append(nil)...)
	if err := w.r.Do(ctx, &c); err != nil {
		return nil, err
	}
	res := new(nfs4.CompoundRes)
	err := decodeReply(c.Reply.AppendWhole(nil), res)
	if err == nil && res.Status != ok {
		err = fmt.Errorf("%s: %s", nfs4.OpName(res.Ops[len(res.Ops)-1].Number), res.Status)
	}
	return res, err
}

// Several clients, each with several connections and slots, work in the same files over TCP: each
// reads what it wrote, with and without locks.
func TestOverTCP(t *testing.T) {
	st := memory.New(memory.Options{})
	srv := New(st, Options{})
	rpc := nfsserver.New(nfsserver.Options{Workers: 4})
	rpc.Register(srv.Program())
	l, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", rpc, tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = l.Close()
		rpc.Close()
		srv.Close()
		_ = st.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dial := func() *tcprpc.Requester {
		r, err := tcprpc.Dial(ctx, l.Addr().String(), tcprpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	var wg sync.WaitGroup
	for client := range 3 {
		first := &wire{r: dial()}
		res, err := first.do(ctx, exchangeID(fmt.Sprint("client", client), 1, 0))
		if err != nil {
			t.Fatal(err)
		}
		id := body[nfs4.EXCHANGE_ID4res](t, res).EirResok4
		if res, err = first.do(ctx, createSession(id.EirClientid, id.EirSequenceid)); err != nil {
			t.Fatal(err)
		}
		first.id = body[nfs4.CREATE_SESSION4res](t, res).CsrResok4.CsrSessionid
		if _, err = first.do(ctx, o(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})); err != nil {
			t.Fatal(err)
		}
		for slot := range uint32(4) {
			w := &wire{r: first.r, id: first.id, slot: slot + 1}
			if slot%2 == 1 {
				w.r = dial()
			}
			wg.Go(func() {
				if err := work(ctx, w, fmt.Sprintf("%d-%d", client, slot)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if n := srv.State(); n.Opens != 0 || n.Ranges != 0 || n.Files != 0 {
		t.Errorf("left: %+v", n)
	}
}

// work increments a counter in a shared file under a lock, and uses files of its own.
func work(ctx context.Context, w *wire, name string) error {
	for i := range 20 {
		own := fmt.Sprint("file-", name, "-", i)
		data := bytes.Repeat([]byte(own), 200)
		res, err := w.do(ctx, putroot, o(nfs4.OP_OPEN, openArgs(name, own, 3, 3, createHow(nfs4.GUARDED4))), getfh,
			write(nfs4.Stateid4{Seqid: 1}, 0, string(data)), read(nfs4.Stateid4{Seqid: 1}, 0, 1<<16))
		if err != nil {
			return err
		}
		if got := res.Ops[5].Body.(*nfs4.READ4res).Resok4.Data.Inline; !bytes.Equal(got, data) {
			return fmt.Errorf("%d bytes of other data", len(got))
		}
		h := res.Ops[3].Body.(*nfs4.GETFH4res).Resok4.Object
		sid := res.Ops[2].Body.(*nfs4.OPEN4res).Resok4.Stateid
		if _, err = w.do(ctx, putfh(h), closeOp(sid), putroot, remove(own)); err != nil {
			return err
		}
		if err := count(ctx, w, name); err != nil {
			return err
		}
	}
	return nil
}

func count(ctx context.Context, w *wire, name string) error {
	res, err := w.do(ctx, putroot, o(nfs4.OP_OPEN, openArgs(name, "shared", 3, 0, createHow(nfs4.UNCHECKED4))), getfh)
	if err != nil {
		return err
	}
	h := res.Ops[3].Body.(*nfs4.GETFH4res).Resok4.Object
	sid := res.Ops[2].Body.(*nfs4.OPEN4res).Resok4.Stateid
	var lock nfs4.Stateid4
	for {
		a := &nfs4.LOCK4args{Locktype: nfs4.WRITEW_LT, Length: 8}
		a.Locker.NewLockOwner = true
		a.Locker.OpenOwner.OpenStateid = sid
		a.Locker.OpenOwner.LockOwner.Owner = []byte(name)
		if res, err = w.do(ctx, putfh(h), o(nfs4.OP_LOCK, a)); err == nil {
			lock = res.Ops[2].Body.(*nfs4.LOCK4res).Resok4.LockStateid
			break
		}
		if res == nil || res.Status != nfs4.NFS4ERR_DENIED {
			return err
		}
	}
	if res, err = w.do(ctx, putfh(h), read(lock, 0, 8)); err != nil {
		return err
	}
	n := 0
	_, _ = fmt.Sscanf(string(res.Ops[2].Body.(*nfs4.READ4res).Resok4.Data.Inline), "%d", &n)
	if _, err = w.do(ctx, putfh(h), write(lock, 0, fmt.Sprintf("%08d", n+1)),
		o(nfs4.OP_LOCKU, &nfs4.LOCKU4args{Locktype: nfs4.WRITE_LT, LockStateid: lock, Length: 8})); err != nil {
		return err
	}
	_, err = w.do(ctx, putfh(h), closeOp(sid))
	return err
}
