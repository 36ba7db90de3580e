package ops_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestEveryProcedure: every procedure of the codecs has a class, and nothing else does.
func TestEveryProcedure(t *testing.T) {
	n := 0
	for p := range nfs.All() {
		for i := range uint32(1024) {
			proc, e := p.Procedure(i), ops.Procedure(p.Number, p.Version, i)
			if (proc == nil) != (e == nil) {
				t.Errorf("%s version %d, procedure %d: known to the codecs: %v, to the table: %v", p.Name, p.Version, i, proc != nil, e != nil)
			}
			if proc == nil || e == nil {
				continue
			}
			n++
			if e.Effect != ops.Keeps || e.Minor != 0 {
				t.Errorf("%s version %d, %s: what only operations of NFSv4 have", p.Name, p.Version, proc.Name)
			}
			act(t, e, proc.Name, proc.NewArgs(), ops.Given)
		}
	}
	if n < 140 {
		t.Errorf("only %d procedures", n)
	}
	for _, x := range [][3]uint32{{100003, 5, 1}, {100003, 3, 22}, {100004, 1, 1}, {100227, 4, 1}} {
		if ops.Procedure(x[0], x[1], x[2]) != nil {
			t.Errorf("%v is known", x)
		}
	}
}

// TestEveryOperation: the same for operations, by the names of the enumerations.
func TestEveryOperation(t *testing.T) {
	for _, c := range []struct {
		what   string
		symbol func(n uint32) string
		entry  func(n uint32) *ops.Entry
	}{
		{"operation", func(n uint32) string { return nfs4.NfsOpnum4(n).Symbol() }, ops.Operation},
		{"callback", func(n uint32) string { return nfs4.NfsCbOpnum4(n).Symbol() }, ops.Callback},
	} {
		n := 0
		for i := range uint32(20000) {
			symbol, e := c.symbol(i), c.entry(i)
			if (symbol == "") != (e == nil) {
				t.Errorf("%s %d %s: in the table: %v", c.what, i, symbol, e != nil)
			}
			if e == nil {
				continue
			}
			n++
			if e.Class == ops.Unknown || e.Class == ops.Composed || e.Minor > 2 {
				t.Errorf("%s %s: %s, since minor version %d", c.what, symbol, e.Class, e.Minor)
			}
		}
		if n < 14 {
			t.Errorf("only %d", n)
		}
	}
	// The arguments' types are those that the codec makes.
	for i := range uint32(100) {
		if e := ops.Operation(i); e != nil {
			var args nfs4.CompoundArgs
			var r xdr.Reader
			b := xdr.AppendUint32(xdr.AppendUint32(make([]byte, 8), 1), i)
			b = append(b, make([]byte, 256)...)
			r.Reset(b, len(b))
			args.Decode(&r)
			if len(args.Ops) != 1 {
				// Zeros are no arguments of it: an empty body has the type, too.
				if args.FailedOp != i {
					t.Errorf("%s: %v", nfs4.OpName(i), r.Err())
				}
				continue
			}
			act(t, e, nfs4.OpName(i), args.Ops[0].Body, ops.Current)
		}
	}
}

// act holds what every entry has to keep to.
func act(t *testing.T, e *ops.Entry, name string, args xdr.Message, last ops.File) {
	t.Helper()
	var a ops.Act
	e.Act(args, &a)
	places := a.Places()
	if e.Class == ops.Changes || e.Class == ops.Holds {
		if len(places) == 0 {
			t.Errorf("%s changes something, and nobody knows where", name)
		} else if places[len(places)-1].File != last {
			t.Errorf("%s acts on file %d last", name, places[len(places)-1].File)
		}
	}
	if a.Class == ops.Unknown || a.Class > e.Class {
		t.Errorf("%s: %s, but at most %s", name, a.Class, e.Class)
	}
	if len(places) > 0 && e.Class != ops.Never {
		switch e.Act(wrong{}, &a); {
		case a.Class == ops.Never:
		case last == ops.Current && a.Places()[0].File != ops.Given: // whatever the arguments
		default:
			t.Errorf("%s takes the arguments of something else: %s", name, a.Class)
		}
	}
}

type wrong struct{ xdr.Void }

func TestOpenActs(t *testing.T) {
	file := []byte("f")
	for _, c := range []struct {
		name  string
		args  nfs4.OPEN4args
		class ops.Class
		named bool
	}{
		{"read", nfs4.OPEN4args{Claim: nfs4.OpenClaim4{File: file}}, ops.Holds, true},
		{"create", nfs4.OPEN4args{Openhow: nfs4.Openflag4{Opentype: nfs4.OPEN4_CREATE}, Claim: nfs4.OpenClaim4{File: file}}, ops.Changes, true},
		{"by handle", nfs4.OPEN4args{Claim: nfs4.OpenClaim4{Claim: nfs4.CLAIM_FH}}, ops.Holds, false},
		{"reclaim", nfs4.OPEN4args{Claim: nfs4.OpenClaim4{Claim: nfs4.CLAIM_PREVIOUS}}, ops.Holds, false},
		{"delegation", nfs4.OPEN4args{Claim: nfs4.OpenClaim4{Claim: nfs4.CLAIM_DELEGATE_CUR, DelegateCurInfo: nfs4.OpenClaimDelegateCur4{File: file}}}, ops.Holds, true},
		{"earlier delegation", nfs4.OPEN4args{Claim: nfs4.OpenClaim4{Claim: nfs4.CLAIM_DELEGATE_PREV, FileDelegatePrev: file}}, ops.Holds, true},
	} {
		var a ops.Act
		ops.Operation(uint32(nfs4.OP_OPEN)).Act(&c.args, &a)
		if p := a.Places(); a.Class != c.class || len(p) != 1 || p[0].Named != c.named || c.named && string(p[0].Name) != "f" {
			t.Errorf("%s: %s %+v", c.name, a.Class, p)
		}
	}
}

func TestArgumentsDecide(t *testing.T) {
	for _, c := range []struct {
		op    nfs4.NfsOpnum4
		args  xdr.Message
		class ops.Class
	}{
		{nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{}, ops.Nothing},
		{nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{Createdir: true}, ops.Changes},
		{nfs4.OP_LAYOUTGET, &nfs4.LAYOUTGET4args{LogaIomode: nfs4.LAYOUTIOMODE4_READ}, ops.Holds},
		{nfs4.OP_LAYOUTGET, &nfs4.LAYOUTGET4args{LogaIomode: nfs4.LAYOUTIOMODE4_RW}, ops.Changes},
		{nfs4.OP_LAYOUTGET, &nfs4.LAYOUTGET4args{}, ops.Changes},
		{nfs4.OP_COPY, &nfs4.COPY4args{}, ops.Changes},
		{nfs4.OP_COPY, &nfs4.COPY4args{CaSourceServer: make([]nfs4.Netloc4, 1)}, ops.Never},
	} {
		var a ops.Act
		if ops.Operation(uint32(c.op)).Act(c.args, &a); a.Class != c.class {
			t.Errorf("%s %+v: %s", c.op, c.args, a.Class)
		}
	}
}

func TestPlainName(t *testing.T) {
	for _, n := range []string{"", ".", "..", "a/b", "/", "../x", "a\x00", "\x00"} {
		if ops.PlainName([]byte(n)) {
			t.Errorf("%q is plain", n)
		}
	}
	for _, n := range []string{"a", "...", ".a", "a..", " ", "ü", "\xff", "a\\b", "com:1"} {
		if !ops.PlainName([]byte(n)) {
			t.Errorf("%q is not plain", n)
		}
	}
}
