package expected

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestMadeUp: zeros are right where nothing was written, the pattern where it was written, and
// either where that is unknown.
func TestCompare(t *testing.T) {
	const object, at = 3, 12345
	no := func(uint64, uint64) bool { return false }
	pattern := make([]byte, 1000)
	plan.FillPattern(pattern, object, at)
	change := func(f func(b []byte)) []byte {
		b := append([]byte{}, pattern...)
		f(b)
		return b
	}
	holed := change(func(b []byte) { clear(b[100:200]) })
	spoilt := change(func(b []byte) { b[555] ^= 0x5a })
	moved := change(func(b []byte) { plan.FillPattern(b[100:200], 8, 77) })
	is := func(from, to uint64, f fill) fills { return fills{{from, to, f}} }
	all := is(0, forever, fill{kind: written, object: object})
	for name, c := range map[string]struct {
		files fills
		b     []byte
		want  verdict.Code
		at    uint64
	}{
		"unknown":             {nil, pattern, verdict.None, 0},
		"unknown, a hole":     {nil, holed, verdict.None, 0},
		"unknown, spoilt":     {nil, spoilt, verdict.PatternDiffers, at + 555},
		"written":             {all, pattern, verdict.None, 0},
		"written, lost":       {all, holed, verdict.WrittenLost, at + 100},
		"written, all lost":   {all, make([]byte, 1000), verdict.WrittenLost, at},
		"written, spoilt":     {all, spoilt, verdict.PatternDiffers, at + 555},
		"written elsewhere":   {is(0, at+100, fill{kind: written, object: object}), holed, verdict.None, 0},
		"a hole":              {is(at+100, at+200, fill{kind: empty}), holed, verdict.None, 0},
		"a hole, filled":      {is(at+100, at+200, fill{kind: empty}), pattern, verdict.HoleFilled, at + 100},
		"copied":              {is(at+100, at+200, fill{kind: written, object: 8, shift: ^uint64(at+100-77) + 1}), moved, verdict.None, 0},
		"copied, not there":   {is(at+100, at+200, fill{kind: written, object: 8, shift: ^uint64(at+100-77) + 1}), pattern, verdict.PatternDiffers, at + 100},
		"not followed":        {is(at+555, at+556, fill{kind: anything}), spoilt, verdict.None, 0},
		"not followed nearby": {is(at+556, at+557, fill{kind: anything}), spoilt, verdict.PatternDiffers, at + 555},
	} {
		l := New(&workload.Workload{})
		l.load.Tables.Header.Payload = plan.Pattern
		l.file(object).fills = c.files
		if n, code := l.Compare(object, at, c.b, no); code != c.want || n != c.at {
			t.Errorf("%s: %s at %d, want %s at %d", name, code, n, c.want, c.at)
		}
	}
	l := New(&workload.Workload{})
	l.load.Tables.Header.Payload = plan.Sparse
	b := make([]byte, 1000)
	b[999] = 1
	if n, code := l.Compare(object, 0, b, no); n != 999 || code != verdict.PatternDiffers {
		t.Errorf("sparse: %s at %d", code, n)
	}
}
