package main

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// restarted is a server that is killed and started again on the same port.
type restarted struct {
	*testing.T
	ctx  context.Context
	args []string
	port uint16
	p    *clitest.Process
}

func (r *restarted) start() {
	r.Helper()
	args := append(r.args, "--tcp-port", fmt.Sprint(r.port))
	r.p = clitest.Start(r.T, nil, args[0], args[1:]...)
	r.p.Until(r.T, "serving", func() bool { return strings.Contains(r.p.Stdout.String(), "Stop with Ctrl-C") })
	for line := range strings.Lines(r.p.Stdout.String()) {
		if at, found := strings.CutPrefix(line, "tcp: "); found {
			a, err := netip.ParseAddrPort(strings.TrimSpace(at))
			if err != nil {
				r.Fatal(err)
			}
			r.port = a.Port()
		}
	}
}

func (r *restarted) kill() {
	r.Helper()
	r.p.Signal(r.T, syscall.SIGKILL)
	r.p.Wait(r.T)
}

func (r *restarted) dial() *tcprpc.Requester {
	r.Helper()
	c, err := tcprpc.Dial(r.ctx, fmt.Sprintf("127.0.0.1:%d", r.port), tcprpc.Options{Reconnect: true, BackoffMin: 10 * time.Millisecond, BackoffMax: 100 * time.Millisecond})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() })
	return c
}

func rpcTo(ctx context.Context, to transport.Requester, program, version, procedure uint32, args, res xdr.Message) error {
	sys := oncrpc.Sys{Machine: []byte("client"), UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	h := oncrpc.Call{RPCVersion: 2, Program: program, Version: version, Procedure: procedure, Cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}}
	call := &transport.Call{MaxReply: 1 << 17}
	call.Stream = args.Append(h.Append(nil))
	if err := to.Do(ctx, call); err != nil {
		return err
	}
	b := call.Reply.AppendWhole(nil)
	var head oncrpc.Reply
	if err := head.Decode(b, len(b)); err != nil || !head.Succeeded() {
		return fmt.Errorf("%v %s", err, head.Status())
	}
	var x xdr.Reader
	x.Reset(b[head.Size():], len(b)-head.Size())
	res.Decode(&x)
	return x.Err()
}

// TestRestart kills a server under load, twice, and starts it again. Clients of NFSv3 notice only
// the delay, those of NFSv4 reclaim, and committed data is there.
func TestRestart(t *testing.T) {
	served := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r := &restarted{T: t, ctx: ctx, args: []string{
		clitest.Binary(t, "rpcrdma-replay"), "serve", "--provider", "tcp", "--dir", served, "--writable", "--lease", "30s",
		"--state", filepath.Join(t.TempDir(), "state"),
	}}
	r.start()
	three := r.dial()
	root := r.root(three)
	four := []*minor{{r: r, to: r.dial(), minor: 0, name: "zero"}, {r: r, to: r.dial(), minor: 1, name: "one"}, {r: r, to: r.dial(), minor: 2, name: "two"}}
	for _, m := range four {
		m.connect()
		m.must(m.open(nfs4.CLAIM_NULL))
		m.write(0)
	}
	var writers sync.WaitGroup
	stop := make(chan struct{})
	counts := make([]int, 3)
	for i := range counts {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					counts[i] = n
					return
				default:
				}
				if err := write3(ctx, three, root, fmt.Sprint("file", i), n); err != nil {
					t.Errorf("file %d, write %d: %v", i, n, err)
					return
				}
			}
		})
	}
	for round := 1; round <= 2; round++ {
		time.Sleep(50 * time.Millisecond)
		r.kill()
		r.start()
		stranger := &minor{r: r, to: r.dial(), minor: 1, name: fmt.Sprint("stranger", round)}
		stranger.connect()
		if st := stranger.open(nfs4.CLAIM_PREVIOUS); st != nfs4.NFS4ERR_RECLAIM_BAD {
			t.Errorf("a stranger reclaims: %s", st)
		}
		for _, m := range four {
			m.reconnect()
			if st := m.open(nfs4.CLAIM_NULL); st != nfs4.NFS4ERR_GRACE {
				t.Errorf("%s: in the grace period: %s", m.name, st)
			}
			m.must(m.open(nfs4.CLAIM_PREVIOUS))
			m.read(round - 1)
			m.write(round)
			m.complete()
		}
	}
	close(stop)
	writers.Wait()
	for i, n := range counts {
		if n == 0 {
			t.Errorf("file %d was never written", i)
			continue
		}
		b, err := os.ReadFile(filepath.Join(served, fmt.Sprint("file", i)))
		if err != nil || len(b) != n*recordSize {
			t.Fatalf("file %d: %d bytes after %d writes, %v", i, len(b), n, err)
		}
		for k := range n {
			if !bytes.Equal(b[k*recordSize:(k+1)*recordSize], record(k)) {
				t.Fatalf("file %d, write %d of %d is lost", i, k, n)
			}
		}
	}
}

const recordSize = 512

func record(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%16d", n), recordSize/16) }

// root is the handle of the root, from MOUNT.
func (r *restarted) root(to transport.Requester) []byte {
	r.Helper()
	res := &nfs4.CompoundRes{}
	a := &nfs4.CompoundArgs{Operations: nfs4.Operations{Ops: []nfs4.Op{{Number: uint32(nfs4.OP_PUTROOTFH)}, {Number: uint32(nfs4.OP_GETFH)}}}}
	if err := rpcTo(r.ctx, to, nfs4.NFS4_PROGRAM, 4, 1, a, res); err != nil || res.Status != 0 {
		r.Fatal(err, res.Status)
	}
	return bytes.Clone(res.Ops[1].Body.(*nfs4.GETFH4res).Resok4.Object)
}

// write3 finds or makes a file and writes a record, to stable storage.
func write3(ctx context.Context, to transport.Requester, root []byte, name string, n int) error {
	c := &nfs3.CREATE3args{Where: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: root}, Name: []byte(name)}}
	made := &nfs3.CREATE3res{}
	if err := rpcTo(ctx, to, nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_CREATE, c, made); err != nil {
		return err
	}
	if made.Status != 0 {
		return fmt.Errorf("CREATE: %s", made.Status)
	}
	w := &nfs3.WRITE3args{File: made.Resok.Obj.Handle, Offset: uint64(n) * recordSize, Count: recordSize, Stable: nfs3.FILE_SYNC}
	w.Data = xdr.Data{Length: recordSize, Inline: record(n)}
	for {
		res := &nfs3.WRITE3res{}
		if err := rpcTo(ctx, to, nfs3.NFS_PROGRAM, 3, nfs3.NFSPROC3_WRITE, w, res); err != nil {
			return err
		}
		if res.Status != nfs3.NFS3ERR_JUKEBOX {
			if res.Status != 0 {
				return fmt.Errorf("WRITE: %s", res.Status)
			}
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// minor is an NFSv4 client with a file of its own, which it keeps open.
type minor struct {
	r       *restarted
	to      transport.Requester
	minor   uint32
	name    string
	id      uint64
	session [16]byte
	seq     uint32 // of the slot, or of the open owner
	fh      []byte
	sid     nfs4.Stateid4
}

func op4(n nfs4.NfsOpnum4, body xdr.Message) nfs4.Op { return nfs4.Op{Number: uint32(n), Body: body} }

func (m *minor) compound(ops ...nfs4.Op) *nfs4.CompoundRes {
	m.r.Helper()
	for {
		a := &nfs4.CompoundArgs{Minorversion: m.minor}
		if m.session != [16]byte{} {
			m.seq++
			a.Ops = []nfs4.Op{op4(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: m.session, SaSequenceid: m.seq})}
		}
		a.Ops = append(a.Ops, ops...)
		res := &nfs4.CompoundRes{}
		if err := rpcTo(m.r.ctx, m.to, nfs4.NFS4_PROGRAM, 4, 1, a, res); err != nil {
			m.r.Fatal(m.name, err)
		}
		if res.Status != nfs4.NFS4ERR_DELAY {
			return res
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (m *minor) must(st nfs4.Nfsstat4) {
	m.r.Helper()
	if st != nfs4.NFS4_OK {
		m.r.Fatalf("%s: %s", m.name, st)
	}
}

func (m *minor) connect() {
	m.r.Helper()
	if m.minor == 0 {
		a := &nfs4.SETCLIENTID4args{}
		a.Client.Id, a.Client.Verifier = []byte(m.name), [8]byte{1}
		res := m.compound(op4(nfs4.OP_SETCLIENTID, a))
		m.must(res.Status)
		got := res.Ops[0].Body.(*nfs4.SETCLIENTID4res).Resok4
		m.id = got.Clientid
		m.must(m.compound(op4(nfs4.OP_SETCLIENTID_CONFIRM, &nfs4.SETCLIENTID_CONFIRM4args{Clientid: got.Clientid, SetclientidConfirm: got.SetclientidConfirm})).Status)
		return
	}
	m.session, m.seq = [16]byte{}, 0
	a := &nfs4.EXCHANGE_ID4args{}
	a.EiaClientowner.CoOwnerid, a.EiaClientowner.CoVerifier = []byte(m.name), [8]byte{1}
	res := m.compound(op4(nfs4.OP_EXCHANGE_ID, a))
	m.must(res.Status)
	got := res.Ops[0].Body.(*nfs4.EXCHANGE_ID4res).EirResok4
	ch := nfs4.ChannelAttrs4{CaMaxrequestsize: 1 << 16, CaMaxresponsesize: 1 << 16, CaMaxresponsesizeCached: 4096, CaMaxoperations: 16, CaMaxrequests: 4}
	res = m.compound(op4(nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{CsaClientid: got.EirClientid, CsaSequence: got.EirSequenceid, CsaForeChanAttrs: ch, CsaBackChanAttrs: ch}))
	m.must(res.Status)
	m.session = res.Ops[0].Body.(*nfs4.CREATE_SESSION4res).CsrResok4.CsrSessionid
	if m.fh == nil && !strings.HasPrefix(m.name, "stranger") {
		m.complete()
	}
}

// reconnect detects that the server has restarted, and creates a new client ID.
func (m *minor) reconnect() {
	m.r.Helper()
	want := nfs4.NFS4ERR_BADSESSION
	var res *nfs4.CompoundRes
	if m.minor == 0 {
		want = nfs4.NFS4ERR_STALE_CLIENTID
		res = m.compound(op4(nfs4.OP_RENEW, &nfs4.RENEW4args{Clientid: m.id}))
	} else {
		res = m.compound()
	}
	if res.Status != want {
		m.r.Errorf("%s: %s after a restart", m.name, res.Status)
	}
	m.connect()
}

func (m *minor) complete() {
	m.r.Helper()
	if m.minor > 0 {
		m.must(m.compound(op4(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})).Status)
	}
}

func (m *minor) open(claim nfs4.OpenClaimType4) nfs4.Nfsstat4 {
	m.r.Helper()
	a := &nfs4.OPEN4args{ShareAccess: nfs4.OPEN4_SHARE_ACCESS_BOTH}
	a.Owner = nfs4.StateOwner4{Clientid: m.id, Owner: []byte("owner")}
	if m.minor == 0 {
		m.seq++
		a.Seqid = m.seq
	}
	a.Claim.Claim = claim
	ops := []nfs4.Op{op4(nfs4.OP_PUTROOTFH, nil)}
	switch {
	case claim == nfs4.CLAIM_PREVIOUS && m.fh != nil:
		ops[0] = op4(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: m.fh})
	case claim == nfs4.CLAIM_PREVIOUS:
		ops = append(ops, op4(nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte("one")}))
	default:
		a.Claim.File, a.Openhow.Opentype = []byte(m.name), nfs4.OPEN4_CREATE
	}
	res := m.compound(append(ops, op4(nfs4.OP_OPEN, a), op4(nfs4.OP_GETFH, nil))...)
	if res.Status != nfs4.NFS4_OK {
		return res.Status
	}
	n := len(res.Ops)
	opened := res.Ops[n-2].Body.(*nfs4.OPEN4res).Resok4
	m.fh, m.sid = bytes.Clone(res.Ops[n-1].Body.(*nfs4.GETFH4res).Resok4.Object), opened.Stateid
	if opened.Rflags&nfs4.OPEN4_RESULT_CONFIRM != 0 {
		m.seq++
		res = m.compound(op4(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: m.fh}), op4(nfs4.OP_OPEN_CONFIRM, &nfs4.OPEN_CONFIRM4args{OpenStateid: m.sid, Seqid: m.seq}))
		m.must(res.Status)
		m.sid = res.Ops[1].Body.(*nfs4.OPEN_CONFIRM4res).Resok4.OpenStateid
	}
	return nfs4.NFS4_OK
}

// write writes a record and has it committed.
func (m *minor) write(n int) {
	m.r.Helper()
	w := &nfs4.WRITE4args{Stateid: m.sid, Offset: uint64(n) * recordSize, Data: xdr.Data{Length: recordSize, Inline: record(n)}}
	m.must(m.compound(op4(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: m.fh}), op4(nfs4.OP_WRITE, w), op4(nfs4.OP_COMMIT, &nfs4.COMMIT4args{})).Status)
}

func (m *minor) read(n int) {
	m.r.Helper()
	res := m.compound(op4(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: m.fh}), op4(nfs4.OP_READ, &nfs4.READ4args{Stateid: m.sid, Offset: uint64(n) * recordSize, Count: recordSize}))
	m.must(res.Status)
	if got := res.Ops[len(res.Ops)-1].Body.(*nfs4.READ4res).Resok4.Data.Inline; !bytes.Equal(got, record(n)) {
		m.r.Errorf("%s: %d bytes of other data", m.name, len(got))
	}
}
