package ops_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

func TestTrail(t *testing.T) {
	type step struct {
		op            nfs4.NfsOpnum4
		args, results xdr.Message
	}
	put := func(h string) step { return step{nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: []byte(h)}, nil} }
	void := func(n nfs4.NfsOpnum4) step { return step{n, xdr.Void{}, nil} }
	lookup := func(n string) step { return step{nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(n)}, nil} }
	get := func(h string) step {
		return step{nfs4.OP_GETFH, xdr.Void{}, &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: []byte(h)}}}
	}
	for _, c := range []struct {
		name              string
		steps             []step
		handle, dir, file string // of the current file
	}{
		{"by handle", []step{put("a")}, "a", "", ""},
		{"by name", []step{put("d"), lookup("f")}, "", "d", "f"},
		{"both", []step{put("d"), lookup("f"), get("h")}, "h", "d", "f"},
		{"in what has no handle", []step{void(nfs4.OP_PUTROOTFH), lookup("a"), lookup("b")}, "", "", "b"},
		{"in what has got one", []step{put("d"), lookup("a"), get("h"), lookup("b")}, "", "h", "b"},
		{"restored", []step{put("d"), void(nfs4.OP_SAVEFH), lookup("f"), get("h"), void(nfs4.OP_RESTOREFH)}, "d", "", ""},
		{"parent", []step{put("d"), void(nfs4.OP_LOOKUPP)}, "", "", ""},
		{"void", []step{void(nfs4.OP_PUTFH)}, "", "", ""},
	} {
		var w ops.FileWalk
		for _, s := range c.steps {
			w.Step(uint32(s.op), s.args, s.results)
		}
		r := &w.Current
		if string(r.Handle) != c.handle || string(r.Dir) != c.dir || string(r.Name) != c.file {
			t.Errorf("%s: %q, %q in %q", c.name, r.Handle, r.Name, r.Dir)
		}
		if r.Name != nil && !r.Is([]byte(c.dir), []byte(c.file)) {
			t.Errorf("%s: not what it is", c.name)
		}
	}
}

// TestTrailAllocates: no COMPOUND costs memory.
func TestTrailAllocates(t *testing.T) {
	args, name := &nfs4.PUTFH4args{Object: []byte("d")}, &nfs4.LOOKUP4args{Objname: []byte("f")}
	res := &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: []byte("h")}}
	var void xdr.Message = xdr.Void{}
	var w ops.FileWalk
	var a ops.Act
	if n := testing.AllocsPerRun(100, func() {
		w.Reset()
		w.Step(uint32(nfs4.OP_PUTFH), args, nil)
		w.Step(uint32(nfs4.OP_LOOKUP), name, nil)
		w.Step(uint32(nfs4.OP_GETFH), void, res)
		ops.Operation(uint32(nfs4.OP_LOOKUP)).Act(name, &a)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
