package ops_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// paths is a Space that writes down the way to a file.
type paths struct{}

func (paths) Handle(h []byte) string { return "#" + string(h) }
func (paths) Root() string           { return "root" }
func (paths) Public() string         { return "public" }
func (paths) Entry(d string, n []byte) string {
	return d + "/" + string(n)
}
func (paths) Parent(f string) string     { return f + "/^" }
func (paths) Attributes(f string) string { return f + "/@" }

func TestWalk(t *testing.T) {
	op := func(n nfs4.NfsOpnum4, m xdr.Message) *nfs4.Op { return &nfs4.Op{Number: uint32(n), Body: m} }
	put := func(h string) *nfs4.Op { return op(nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: []byte(h)}) }
	void := func(n nfs4.NfsOpnum4) *nfs4.Op { return op(n, xdr.Void{}) }
	lookup := func(n string) *nfs4.Op { return op(nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(n)}) }
	for _, c := range []struct {
		ops            []*nfs4.Op
		current, saved string
	}{
		{nil, "", ""},
		{[]*nfs4.Op{put("a"), lookup("b"), void(nfs4.OP_GETFH)}, "#a/b", ""},
		{[]*nfs4.Op{void(nfs4.OP_PUTROOTFH), void(nfs4.OP_SAVEFH), put("a"), void(nfs4.OP_LOOKUPP)}, "#a/^", "root"},
		{[]*nfs4.Op{put("a"), void(nfs4.OP_SAVEFH), void(nfs4.OP_PUTPUBFH), void(nfs4.OP_RESTOREFH)}, "#a", "#a"},
		{[]*nfs4.Op{void(nfs4.OP_RESTOREFH)}, "", ""},
		{[]*nfs4.Op{put("a"), op(nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{}), lookup("x")}, "#a/@/x", ""},
		{[]*nfs4.Op{put("a"), op(nfs4.OP_CREATE, &nfs4.CREATE4args{Objname: []byte("d")})}, "#a/d", ""},
		{[]*nfs4.Op{put("a"), op(nfs4.OP_OPEN, &nfs4.OPEN4args{Claim: nfs4.OpenClaim4{File: []byte("f")}})}, "#a/f", ""},
		{[]*nfs4.Op{put("a"), op(nfs4.OP_OPEN, &nfs4.OPEN4args{Claim: nfs4.OpenClaim4{Claim: nfs4.CLAIM_FH}})}, "#a", ""},
		{[]*nfs4.Op{put("a"), void(nfs4.OP_SAVEFH), op(nfs4.OP_SECINFO, &nfs4.SECINFO4args{})}, "", "#a"},
		{[]*nfs4.Op{put("a"), op(nfs4.OP_SECINFO_NO_NAME, &nfs4.SECINFO_NO_NAME4args{})}, "", ""},
		{[]*nfs4.Op{put("a"), op(nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte("x")})}, "#a", ""},
		{[]*nfs4.Op{put("a"), void(nfs4.OP_SAVEFH), {Number: 99}}, "", ""},
		{[]*nfs4.Op{put("a"), op(nfs4.OP_LOOKUP, xdr.Void{})}, "", ""},
		{[]*nfs4.Op{put("a"), op(nfs4.OP_PUTFH, xdr.Void{})}, "", ""},
	} {
		var w ops.Walk[string, paths]
		for _, o := range c.ops {
			w.Step(o.Number, o.Body)
		}
		if w.Current != c.current || w.Saved != c.saved {
			t.Errorf("%d operations lead to %q and %q, not %q and %q", len(c.ops), w.Current, w.Saved, c.current, c.saved)
		}
	}
}
