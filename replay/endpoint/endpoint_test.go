package endpoint

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

var (
	_ transport.Requester = (*Requester)(nil)
	_ transport.Requester = backward{}
	_ transport.Exchange  = (*exchange)(nil)

	anywhere = netip.MustParseAddrPort("127.0.0.1:0")
)

// start makes a Responder and a Requester of one provider that end with the
// test.
func start(t testing.TB, p verbs.Provider, h transport.Handler, so, co Options) (*Responder, *Requester) {
	t.Helper()
	return startAt(t, p, anywhere, p, h, so, co)
}

func startAt(t testing.TB, sp verbs.Provider, at netip.AddrPort, cp verbs.Provider, h transport.Handler, so, co Options) (*Responder, *Requester) {
	t.Helper()
	if h == nil {
		h = &rpctest.Handler{}
	}
	s, err := Listen(t.Context(), sp, at, h, so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r, err := Dial(t.Context(), cp, s.Addr(), co)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return s, r
}

func newLoop(t testing.TB, o loop.Options) *loop.Provider {
	p := loop.New(o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// mode is a way of moving data.
type mode struct {
	name     string
	so, co   Options
	inline   bool // nothing long
	ownAlloc bool // items and results from Alloc
}

func modes() []mode {
	return []mode{
		{name: "per call"},
		{name: "per call, allocated", ownAlloc: true},
		{name: "inline", co: Options{Registration: Inline}, inline: true},
		{name: "pool", co: Options{Registration: Pool}, so: Options{Registration: Pool}},
		{name: "persistent", co: Options{Registration: Persistent}, so: Options{Registration: Persistent}, ownAlloc: true},
		{name: "persistent, other memory", co: Options{Registration: Persistent}},
		{name: "windows", co: Options{Registration: Windows}, so: Options{Registration: Windows}, ownAlloc: true},
		{name: "windows, other memory", co: Options{Registration: Windows}, so: Options{Registration: Windows}},
		{name: "minimum", co: Options{Choice: ChooseMinimum}},
		{name: "Linux's server", so: Options{ReplyChunkAlways: true, OperationSize: 20480}},
		{name: "no invalidation", co: Options{NoRemoteInvalidate: true, AnyOffset: true}},
	}
}

// requests are calls of all shapes, with data sizes around size.
func requests(size int) []rpctest.Request {
	var all []rpctest.Request
	for i, items := range [][]int{{}, {size}, {size + 1, 3, size}} {
		for j, results := range [][]int{{}, {size}, {size, 5, size + 3}} {
			q := rpctest.Request{Seed: uint32(size + 10*i + j)}
			for k, n := range items {
				q.Items = append(q.Items, rpctest.Bytes(n, uint32(k+size)))
			}
			for _, n := range results {
				q.Results = append(q.Results, uint32(n))
			}
			all = append(all, q)
			if i == 0 || j == 0 {
				q.Fill, q.Filler = uint32(size), rpctest.Bytes(size+2, 77)
				all = append(all, q)
			}
		}
	}
	return all
}

// try sends a call with room for its results.
func try(t testing.TB, r transport.Requester, c *transport.Call, q *rpctest.Request, alloc bool) error {
	t.Helper()
	c.XID = 0
	var mine [][]byte
	get := func(n int) []byte {
		if !alloc {
			return make([]byte, n)
		}
		b, err := r.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		mine = append(mine, b)
		return b
	}
	items := q.Items
	if alloc {
		q.Items = nil
		for _, it := range items {
			b := get(len(it))
			copy(b, it)
			q.Items = append(q.Items, b)
		}
	}
	rpctest.Set(c, q)
	c.Results = c.Results[:0]
	for _, n := range q.Results {
		c.Results = append(c.Results, get(int(n)))
	}
	err := r.Do(t.Context(), c)
	if err == nil {
		err = rpctest.Check(c, q)
	}
	for _, b := range mine {
		r.Free(b)
	}
	q.Items = items
	return err
}

func runTable(t *testing.T, f fabric, sizes, inlines, segments []int) {
	for _, m := range modes() {
		for _, model := range []Model{ReadWrite, ReadRead} {
			for _, inline := range inlines {
				for _, segment := range segments {
					t.Run(fmt.Sprintf("%s/%d/inline %d/segment %d", m.name, model, inline, segment), func(t *testing.T) {
						sp, at, cp := f.pair(t, nil)
						so, co := m.so, m.co
						so.Model, co.Model = model, model
						so.InlineSend, so.InlineReceive = inline, inline
						co.InlineSend, co.InlineReceive = inline, inline
						so.SegmentSize, co.SegmentSize = segment, segment
						s, r := startAt(t, sp, at, cp, nil, so, co)
						var c transport.Call
						for _, size := range sizes {
							if m.inline && size > 100 || size/segment > 8 && inline == 1024 {
								continue
							}
							for i, q := range requests(size) {
								if m.inline && 3*(size+8)+300 > inline {
									continue
								}
								if err := try(t, r, &c, &q, m.ownAlloc); err != nil {
									t.Fatalf("size %d, request %d: %v", size, i, err)
								}
							}
						}
						if st := r.Stats(); st.Errors != 0 || st.Calls != st.Replies {
							t.Errorf("Requester: %+v", st)
						}
						_ = s
					})
				}
			}
		}
	}
}

func TestTable(t *testing.T) {
	for name, o := range map[string]loop.Options{
		"direct": {},
		"least":  {Async: true, OwnMemory: true, NoOffsets: true, NoInvalidate: true, MaxSGE: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := fabric{name, func(t testing.TB, _ verbs.Tap) (verbs.Provider, netip.AddrPort, verbs.Provider) {
				p := newLoop(t, o)
				return p, anywhere, p
			}}
			runTable(t, f,
				[]int{0, 1, 999, 4000, 65537}, []int{1024, 4096}, []int{4096, 1 << 20})
		})
	}
}

func TestDialects(t *testing.T) {
	for _, d := range []rpcrdma.Dialect{rpcrdma.DialectCallaghan, rpcrdma.DialectSolaris} {
		t.Run(d.String(), func(t *testing.T) {
			p := newLoop(t, loop.Options{})
			_, r := start(t, p, nil, Options{Dialect: d}, Options{Dialect: d, Credits: 3, InlineReceive: 1024, InlineSend: 1024})
			var c transport.Call
			for _, size := range []int{0, 1, 500, 1024, 5000, 100001} {
				for i, q := range requests(size) {
					if err := try(t, r, &c, &q, false); err != nil {
						t.Fatalf("size %d, request %d: %v", size, i, err)
					}
				}
			}
		})
	}
}
