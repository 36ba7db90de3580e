package nfs4

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// captured sends this server the calls that Linux clients have sent to a Linux server, with this
// server's handles and stateids, and compares the replies.
type captured struct {
	*rig
	handles  map[string][]byte
	others   map[[12]byte][12]byte
	clients  map[uint64]uint64
	sessions map[[16]byte][16]byte
	confirms map[[8]byte][8]byte
	cookies  map[uint64]uint64
	cookie   map[uint64][8]byte // our verifier, by our cookie

	made      map[store.Handle]bool // objects from before the capture
	booted    bool
	ops, same int
	differ    map[string]int
	lines     []string
	bad       int

	delegations [2]int // given in the capture, and of those, given here
}

func newCaptured(r *rig) *captured {
	c := &captured{rig: r, handles: map[string][]byte{}, others: map[[12]byte][12]byte{}, clients: map[uint64]uint64{},
		sessions: map[[16]byte][16]byte{}, confirms: map[[8]byte][8]byte{}, cookies: map[uint64]uint64{}, cookie: map[uint64][8]byte{},
		differ: map[string]int{}, made: map[store.Handle]bool{}}
	var a store.Attr
	var w store.Wcc
	if err := r.store.Mkdir(&store.Cred{}, r.store.Root(), []byte("export"), &store.SetAttr{Mask: store.SetMode, Mode: 0o777}, &a, &w); err != nil {
		r.Fatal(err)
	}
	return c
}

func (c *captured) stateid(s *nfs4.Stateid4) {
	if o, ok := c.others[s.Other]; ok {
		s.Other = o
		if o == ([12]byte{}) {
			s.Seqid = 0
		}
	}
}

func (c *captured) handle(h *[]byte) {
	if o, ok := c.handles[string(*h)]; ok {
		*h = o
	}
}

// call replaces captured ids by ours.
func (c *captured) call(tx *transaction.Transaction, a *nfs4.CompoundArgs) {
	for _, op := range a.Ops {
		switch b := op.Body.(type) {
		case *nfs4.SETCLIENTID_CONFIRM4args:
			b.Clientid, b.SetclientidConfirm = c.clients[b.Clientid], c.confirms[b.SetclientidConfirm]
		case *nfs4.RENEW4args:
			b.Clientid = c.clients[b.Clientid]
		case *nfs4.CREATE_SESSION4args:
			b.CsaClientid = c.clients[b.CsaClientid]
		case *nfs4.DESTROY_CLIENTID4args:
			b.DcaClientid = c.clients[b.DcaClientid]
		case *nfs4.DESTROY_SESSION4args:
			b.DsaSessionid = c.sessions[b.DsaSessionid]
		case *nfs4.BIND_CONN_TO_SESSION4args:
			b.BctsaSessid = c.sessions[b.BctsaSessid]
		case *nfs4.SEQUENCE4args:
			b.SaSessionid = c.sessions[b.SaSessionid]
		case *nfs4.PUTFH4args:
			c.handle(&b.Object)
		case *nfs4.OPEN4args:
			b.Owner.Clientid = c.clients[b.Owner.Clientid]
		case *nfs4.OPEN_CONFIRM4args:
			c.stateid(&b.OpenStateid)
		case *nfs4.OPEN_DOWNGRADE4args:
			c.stateid(&b.OpenStateid)
		case *nfs4.DELEGRETURN4args:
			c.stateid(&b.DelegStateid)
		case *nfs4.CLOSE4args:
			c.stateid(&b.OpenStateid)
		case *nfs4.LOCK4args:
			c.stateid(&b.Locker.OpenOwner.OpenStateid)
			c.stateid(&b.Locker.LockOwner.LockStateid)
			b.Locker.OpenOwner.LockOwner.Clientid = c.clients[b.Locker.OpenOwner.LockOwner.Clientid]
		case *nfs4.LOCKT4args:
			b.Owner.Clientid = c.clients[b.Owner.Clientid]
		case *nfs4.LOCKU4args:
			c.stateid(&b.LockStateid)
		case *nfs4.RELEASE_LOCKOWNER4args:
			b.LockOwner.Clientid = c.clients[b.LockOwner.Clientid]
		case *nfs4.READ4args:
			c.stateid(&b.Stateid)
		case *nfs4.READ_PLUS4args:
			c.stateid(&b.RpaStateid)
		case *nfs4.WRITE4args:
			c.stateid(&b.Stateid)
			if n := b.Data.Chunk; n > 0 {
				b.Data = xdr.Data{Length: b.Data.Length, Inline: tx.CallData(n - 1)[:b.Data.Length]}
			}
		case *nfs4.CREATE4args:
			if d := &b.Objtype.Linkdata; d.Chunk > 0 {
				*d = xdr.Data{Length: d.Length, Inline: tx.CallData(d.Chunk - 1)[:d.Length]}
			}
		case *nfs4.SETATTR4args:
			c.stateid(&b.Stateid)
		case *nfs4.SEEK4args:
			c.stateid(&b.SaStateid)
		case *nfs4.ALLOCATE4args:
			c.stateid(&b.AaStateid)
		case *nfs4.DEALLOCATE4args:
			c.stateid(&b.DaStateid)
		case *nfs4.COPY4args:
			c.stateid(&b.CaSrcStateid)
			c.stateid(&b.CaDstStateid)
		case *nfs4.CLONE4args:
			c.stateid(&b.ClSrcStateid)
			c.stateid(&b.ClDstStateid)
		case *nfs4.READDIR4args:
			if mine, ok := c.cookies[b.Cookie]; ok {
				b.Cookie = mine
				b.Cookieverf = c.cookie[mine]
			}
		}
	}
}

// prepare creates what the Linux server must have had before the capture started.
func (c *captured) prepare(tx *transaction.Transaction, args *nfs4.CompoundArgs, theirs *nfs4.CompoundRes) {
	cred := &store.Cred{}
	cur := store.Handle{}
	find := func(name []byte, i int) {
		var a store.Attr
		var w store.Wcc
		err := c.store.Lookup(cred, cur, name, &a)
		if store.Of(err) == store.ErrNoEnt {
			dir, size := false, uint64(0)
			for _, r := range theirs.Ops[i:] {
				if g, isAttr := r.Body.(*nfs4.GETATTR4res); isAttr && g.Status == ok {
					at, _ := g.Resok4.ObjAttributes.Attrs()
					dir, size = at.Type == nfs4.NF4DIR, at.Size
				}
			}
			if dir {
				err = c.store.Mkdir(cred, cur, name, &store.SetAttr{Mask: store.SetMode, Mode: 0o777}, &a, &w)
			} else {
				_, err = c.store.Create(cred, cur, name, &store.Create{Set: store.SetAttr{Mask: store.SetMode | store.SetSize, Mode: 0o666, Size: size}}, &a, &w)
			}
			c.made[a.Handle] = err == nil
		}
		cur = a.Handle
	}
	for i, op := range args.Ops {
		if i >= len(theirs.Ops) {
			return
		}
		if st, _, _ := theirs.Ops[i].Status(); st != 0 {
			return
		}
		switch b := op.Body.(type) {
		case *nfs4.PUTFH4args:
			cur, _ = c.store.Info().Handles.Open(b.Object)
		case *nfs4.LOOKUP4args:
			find(b.Objname, i)
		case *nfs4.OPEN4args:
			if b.Openhow.Opentype != nfs4.OPEN4_CREATE && len(b.Claim.File) > 0 {
				find(b.Claim.File, i)
			}
		case *nfs4.READ4args:
			r := theirs.Ops[i].Body.(*nfs4.READ4res)
			if data := c.data(tx, r); c.made[cur] && data != nil {
				var w store.Wcc
				if err := c.store.Write(cred, cur, b.Offset, data, false, &w); err != nil {
					c.Fatal(err)
				}
			}
		case *nfs4.READDIR4args:
			r := theirs.Ops[i].Body.(*nfs4.READDIR4res)
			for j := range r.Resok4.Reply.Entries {
				c.missing(cur, &r.Resok4.Reply.Entries[j])
			}
		default:
			if op.Number == uint32(nfs4.OP_PUTROOTFH) {
				cur = c.store.Root()
			}
		}
	}
}

// missing creates an entry of a directory if it does not exist.
func (c *captured) missing(dir store.Handle, e *nfs4.Entry4) {
	var a store.Attr
	var w store.Wcc
	cred := &store.Cred{}
	if store.Of(c.store.Lookup(cred, dir, e.Name, &a)) != store.ErrNoEnt {
		return
	}
	at, _ := e.Attrs.Attrs()
	set := &store.SetAttr{Mask: store.SetMode, Mode: 0o777}
	var err error
	switch at.Type {
	case nfs4.NF4DIR:
		err = c.store.Mkdir(cred, dir, e.Name, set, &a, &w)
	case nfs4.NF4LNK:
		err = c.store.Symlink(cred, dir, e.Name, bytes.Repeat([]byte("x"), int(at.Size)), set, &a, &w)
	default:
		set.Mask, set.Size = store.SetMode|store.SetSize, at.Size
		_, err = c.store.Create(cred, dir, e.Name, &store.Create{Set: *set}, &a, &w)
	}
	if err != nil {
		c.Fatal(err)
	}
	c.made[a.Handle] = true
}

// data is what a captured READ returned, nil if not all of it is known.
func (c *captured) data(tx *transaction.Transaction, r *nfs4.READ4res) []byte {
	b := r.Resok4.Data.Inline
	if n := r.Resok4.Data.Chunk; n > 0 {
		b = tx.Data(transaction.WriteList, n-1)
	}
	if uint32(len(b)) < r.Resok4.Data.Length {
		return nil
	}
	return b[:r.Resok4.Data.Length]
}

// learn pairs the ids in the captured reply with ours.
func (c *captured) learn(theirs, ours xdr.Message) {
	switch t := theirs.(type) {
	case *nfs4.SETCLIENTID4res:
		o := ours.(*nfs4.SETCLIENTID4res)
		c.clients[t.Resok4.Clientid] = o.Resok4.Clientid
		c.confirms[t.Resok4.SetclientidConfirm] = o.Resok4.SetclientidConfirm
	case *nfs4.EXCHANGE_ID4res:
		c.clients[t.EirResok4.EirClientid] = ours.(*nfs4.EXCHANGE_ID4res).EirResok4.EirClientid
	case *nfs4.CREATE_SESSION4res:
		c.sessions[t.CsrResok4.CsrSessionid] = ours.(*nfs4.CREATE_SESSION4res).CsrResok4.CsrSessionid
	case *nfs4.GETFH4res:
		c.handles[string(t.Resok4.Object)] = bytes.Clone(ours.(*nfs4.GETFH4res).Resok4.Object)
	case *nfs4.OPEN4res:
		o := &ours.(*nfs4.OPEN4res).Resok4
		c.others[t.Resok4.Stateid.Other] = o.Stateid.Other
		if theirs, given := delegated(&t.Resok4.Delegation); given {
			mine, got := delegated(&o.Delegation)
			c.others[theirs] = mine
			c.delegations[0]++
			if got {
				c.delegations[1]++
			}
			// Without a delegation, its operations are done without an open.
		}
	case *nfs4.LOCK4res:
		c.others[t.Resok4.LockStateid.Other] = ours.(*nfs4.LOCK4res).Resok4.LockStateid.Other
	case *nfs4.READDIR4res:
		o := ours.(*nfs4.READDIR4res)
		mine := map[string]uint64{}
		for i := range o.Resok4.Reply.Entries {
			e := &o.Resok4.Reply.Entries[i]
			mine[string(e.Name)] = e.Cookie
			c.cookie[e.Cookie] = o.Resok4.Cookieverf
			c.entry(string(e.Name), &e.Attrs, true)
		}
		for i := range t.Resok4.Reply.Entries {
			e := &t.Resok4.Reply.Entries[i]
			c.cookies[e.Cookie] = mine[string(e.Name)]
			c.entry(string(e.Name), &e.Attrs, false)
		}
	}
}

// unwanted makes OPENs that got no delegation ask for none, since the captured client would not
// return it.
func (c *captured) unwanted(args *nfs4.CompoundArgs, theirs *nfs4.CompoundRes) {
	for i, op := range args.Ops {
		a, isOpen := op.Body.(*nfs4.OPEN4args)
		if !isOpen || args.Minorversion == 0 || theirs == nil || i >= len(theirs.Ops) {
			continue
		}
		if r, fine := theirs.Ops[i].Body.(*nfs4.OPEN4res); fine && r.Status == ok {
			if _, given := delegated(&r.Resok4.Delegation); !given {
				a.ShareAccess = a.ShareAccess&nfs4.OPEN4_SHARE_ACCESS_BOTH | nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG
			}
		}
	}
}

// delegated is the stateid of a delegation.
func delegated(d *nfs4.OpenDelegation4) (other [12]byte, given bool) {
	switch d.DelegationType {
	case nfs4.OPEN_DELEGATE_READ:
		return d.Read.Stateid.Other, true
	case nfs4.OPEN_DELEGATE_WRITE:
		return d.Write.Stateid.Other, true
	}
	return other, false
}

// entry pairs the handles in entries of directories.
func (c *captured) entry(name string, f *nfs4.Fattr4, ours bool) {
	a, err := f.Attrs()
	if err != nil || !a.Has(nfs4.FATTR4_FILEHANDLE) {
		return
	}
	if ours {
		c.handles["entry "+name] = bytes.Clone(a.Filehandle)
	} else if h := c.handles["entry "+name]; h != nil {
		c.handles[string(a.Filehandle)] = h
	}
}

// transaction sends a call and checks the reply.
func (c *captured) transaction(tx *transaction.Transaction, v *rpc.View) {
	args, fine := v.Args().(*nfs4.CompoundArgs)
	if !fine || v.ArgsErr != nil || tx.Backward {
		return
	}
	theirs, _ := v.Result().(*nfs4.CompoundRes)
	if theirs != nil && theirs.Status == nfs4.NFS4ERR_BADSESSION && len(c.sessions) > 0 && !c.booted {
		// The Linux server has restarted, so this one does.
		c.shut()
		c.boot(Options{})
		c.booted = true
	}
	c.call(tx, args)
	c.unwanted(args, theirs)
	if theirs != nil && v.ResultErr == nil {
		c.prepare(tx, args, theirs)
	}
	var sys oncrpc.Sys
	sys.Decode(v.Call().Cred.Body)
	x := c.raw(sys.UID, args.Append(nil))
	c.settle()
	res := new(nfs4.CompoundRes)
	if err := decodeReply(x.reply, res); err != nil {
		c.Errorf("frame %d: answer to %v: %v", tx.Call.First.Number, v.Operations(), err)
		return
	}
	if n := len(res.Ops); n > len(args.Ops) || n < len(args.Ops) && res.Status == ok {
		c.Errorf("frame %d: %d results of %d operations, %s", tx.Call.First.Number, n, len(args.Ops), res.Status)
	}
	if theirs == nil || v.ResultErr != nil {
		return
	}
	for i := range min(len(theirs.Ops), len(res.Ops)) {
		want, _, _ := theirs.Ops[i].Status()
		got, _, _ := res.Ops[i].Status()
		c.ops++
		if want == got {
			c.same++
			if got == 0 {
				c.learn(theirs.Ops[i].Body, res.Ops[i].Body)
				c.content(tx, theirs.Ops[i].Body, res.Ops[i].Body)
			}
			continue
		}
		line := fmt.Sprintf("%s: %s instead of %s", nfs4.OpName(res.Ops[i].Number), nfs4.StatusName(got), nfs4.StatusName(want))
		c.differ[line]++
		c.lines = append(c.lines, fmt.Sprintf("frame %d: %s", tx.Call.First.Number, line))
		break
	}
}

// content compares the data that was read.
func (c *captured) content(tx *transaction.Transaction, theirs, ours xdr.Message) {
	t, isRead := theirs.(*nfs4.READ4res)
	if !isRead {
		return
	}
	want := c.data(tx, t)
	if got := ours.(*nfs4.READ4res).Resok4.Data.Inline; want != nil && !bytes.Equal(want, got) {
		c.bad++
		c.lines = append(c.lines, fmt.Sprintf("frame %d: other data read: %d bytes instead of %d", tx.Call.First.Number, len(got), len(want)))
	}
}

func runCapture(t *testing.T, name string) *captured {
	t.Helper()
	c := newCaptured(newRig(t, Options{}))
	c.back = &answering{}
	f, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var v rpc.View
	d := decode.New(decode.Options{Transactions: transaction.Options{KeepData: true}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		c.transaction(tx, &v)
	})
	if err := d.Run(f); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *captured) summary() string {
	var s []string
	for line, n := range c.differ {
		s = append(s, fmt.Sprintf("%d× %s", n, line))
	}
	sort.Strings(s)
	return strings.Join(s, "\n")
}

// Where this server's replies differ from those of Linux, and why.
var allowed = map[string]string{
	"DELEGRETURN: NFS4ERR_BAD_STATEID instead of NFS4_OK": "NFSv4.0: callbacks to the captured address are not allowed",
	"SETATTR: NFS4ERR_ATTRNOTSUPP instead of NFS4_OK":     "there are no ACLs",
	"CREATE: NFS4_OK instead of NFS4ERR_NAMETOOLONG":      "the Linux server's file system has shorter links",
	"LOOKUP: NFS4_OK instead of NFS4ERR_NOENT":            "that link",
	"SEQUENCE: NFS4ERR_BADSESSION instead of NFS4_OK":     "the session is older than the capture",
}

// TestCaptures sends all calls of the Linux clients in the samples. Every reply is well formed
// and has the status and the data of the Linux server.
func TestCaptures(t *testing.T) {
	names := sampled.Captures(t, "*-nfs4*")
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			c := runCapture(t, name)
			t.Logf("%d of %d operations answered as by Linux, %d other data, %d delegations of %d\n%s", c.same, c.ops, c.bad, c.delegations[1], c.delegations[0], c.summary())
			for line := range c.differ {
				if allowed[line] == "" {
					t.Error(line)
				}
			}
			if c.bad > 0 {
				t.Errorf("%d times other data", c.bad)
			}
			if t.Failed() {
				t.Log(strings.Join(c.lines, "\n"))
			}
		})
	}
}
