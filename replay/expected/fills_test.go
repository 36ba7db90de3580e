package expected

import (
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestFills checks the ranges against an array.
func TestFills(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const size = 64
	var f fills
	var model [size]fill
	for step := range 20000 {
		from := rng.Uint64N(size)
		to := from + rng.Uint64N(size-from+1)
		with := fill{kind: fillKind(rng.IntN(5))}
		if with.kind == written {
			with.object = rng.IntN(2)
		}
		f.set(from, to, with)
		for i := from; i < to; i++ {
			model[i] = with
		}
		at := uint64(0)
		f.each(0, size, func(x filled) {
			if x.from != at || x.to <= x.from {
				t.Fatalf("step %d: [%d, %d) at %d", step, x.from, x.to, at)
			}
			for ; at < x.to; at++ {
				if model[at] != x.fill {
					t.Fatalf("step %d: %d is %+v, want %+v", step, at, x.fill, model[at])
				}
			}
		})
		if at != size {
			t.Fatalf("step %d: ends at %d", step, at)
		}
		for i := range f {
			if f[i].kind == unknown || i > 0 && f[i].from < f[i-1].to {
				t.Fatalf("step %d: %+v", step, f)
			}
			if i > 0 && f[i].from == f[i-1].to && f[i].fill == f[i-1].fill {
				t.Fatalf("step %d: neighbours hold the same: %+v", step, f)
			}
		}
	}
}

// TestFillsEnd: the number of ranges is limited, and whatever is not kept is unknown.
func TestFillsEnd(t *testing.T) {
	var f fills
	for i := range uint64(3 * maxFills) {
		f.set(4*i, 4*i+2, fill{kind: written})
	}
	if len(f) != maxFills {
		t.Errorf("%d ranges", len(f))
	}
	f.set(0, 2, fill{kind: empty})
	f.set(4*2*maxFills, forever, fill{kind: empty})
	f.each(0, 2, func(x filled) {
		if x.kind != empty && x.kind != unknown {
			t.Errorf("%+v", x)
		}
	})
	f.each(4*2*maxFills, 4*2*maxFills+8, func(x filled) {
		if x.kind != unknown {
			t.Errorf("%+v", x)
		}
	})
}

// TestOverwrites: after an operation that changes a range in an unknown way, nothing is known of
// the range; an operation that changes no range leaves everything as it was.
func TestOverwrites(t *testing.T) {
	for _, c := range []struct {
		op   nfs4.NfsOpnum4
		args xdr.Message
		want bool
	}{
		{nfs4.OP_WRITE_SAME, &nfs4.WRITE_SAME4args{WsaAdb: nfs4.AppDataBlock4{AdbOffset: 100, AdbBlockSize: 10, AdbBlockCount: 3}}, true},
		{nfs4.OP_ALLOCATE, &nfs4.ALLOCATE4args{AaOffset: 100, AaLength: 30}, false},
		{nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{}, false},
		{nfs4.OP_READ, &nfs4.READ4args{Offset: 100, Count: 30}, false},
		{9999, &nfs4.READ4args{Offset: 100, Count: 30}, false},
	} {
		var e effect
		o := &plan.Op{Compound: &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(c.op)}}}}
		if got := effect4(&step{op: o, args: c.args}, &e); got != c.want || got && (e.kind != anything || e.from != 100 || e.to != 130) {
			t.Errorf("%s: %v %+v", c.op, got, e)
		}
	}
}
