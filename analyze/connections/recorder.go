package connections

import (
	"cmp"
	"slices"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Limits of what is saved of a tap.
const (
	maxSaved  = 1 << 14 // connections
	maxCalled = 4096    // connections whose calls are remembered, by which other taps recognise them
	maxInputs = 1 << 20
	maxBytes  = 1 << 20 // of an account
)

// Recorder collects what is saved of the connections of a tap: see Section.
type Recorder struct {
	mu    sync.Mutex
	ended []*piece
	calls map[int]*called
	lost  uint64
	taken int  // connections that Ended has taken out
	more  bool // there are connections whose calls were not remembered
}

// called is what is remembered of the calls of a connection.
type called struct {
	calls state.Calls
	near  state.Median
}

// piece is a connection as it is saved.
type piece struct {
	seen  state.Seen
	near  int64
	timed uint64
	body  []byte      // the connection
	id    int         // when writing
	last  rdma.Ref    // its last packet
	conn  *Connection // when reading
}

// Transaction remembers a transaction that has ended.
func (r *Recorder) Transaction(tx *transaction.Transaction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.of(tx.Connection.Resolve().ID)
	if k == nil {
		return
	}
	k.calls.Add(tx.Backward, tx.XID)
	if p, ok := tx.Phases(); ok && p.Divided() {
		k.near.Add(int64(p.Server))
	}
}

// of is what is remembered of a connection; nil if there is no room.
func (r *Recorder) of(id int) *called {
	k := r.calls[id]
	if k == nil {
		if len(r.calls) >= maxCalled {
			r.more = true
			return nil
		}
		if r.calls == nil {
			r.calls = make(map[int]*called)
		}
		k = &called{}
		r.calls[id] = k
	}
	return k
}

// Closed remembers a connection at its end, or at the end of the capture: see decode.Observer.Closed.
func (r *Recorder) Closed(c *rdma.Connection) {
	r.Add(New(c))
}

// Add is Closed for a connection of which more is known.
func (r *Recorder) Add(c *Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.MergedInto != nil {
		if from := r.calls[c.ID]; from != nil {
			delete(r.calls, c.ID)
			if to := r.of(c.Resolve().ID); to != nil {
				to.calls.Merge(&from.calls)
				to.near.Merge(&from.near)
			}
		}
		return
	}
	if len(r.ended)+r.taken >= maxSaved {
		r.lost++
		return
	}
	k := state.NewWriter(nil)
	c.code(k)
	r.ended = append(r.ended, &piece{seen: state.NewSeen(c.Connection, state.Calls{}), body: k.Bytes(), id: c.ID, last: c.Last})
}

// Section encodes what was recorded; inputs are the names of the captures, and a is nil if it is not known.
func (r *Recorder) Section(inputs []string, a *decode.Account) state.Section {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &tap{inputs: inputs, pieces: r.ended, lost: r.lost, more: r.more}
	if a != nil {
		t.account = account.New(a)
	}
	r.describe(t.pieces)
	return sections.Section(&none{}, t.code)
}

// describe completes what is saved of connections that have ended.
func (r *Recorder) describe(list []*piece) {
	slices.SortFunc(list, func(a, b *piece) int { return cmp.Compare(a.id, b.id) })
	for _, p := range list {
		if k := r.calls[p.id]; k != nil {
			p.seen.Calls = k.calls
			p.near, p.timed = k.near.Value()
		}
	}
}

// Ended takes out the connections that ended before a packet. The section of the others is to be completed with it: see Join.
func (r *Recorder) Ended(before rdma.Ref) (s state.Section, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var t tap
	r.ended = slices.DeleteFunc(r.ended, func(p *piece) bool {
		if p.last.Before(before) {
			t.pieces = append(t.pieces, p)
			return true
		}
		return false
	})
	r.describe(t.pieces)
	for _, p := range t.pieces {
		delete(r.calls, p.id)
	}
	r.taken += len(t.pieces)
	return sections.Section(&none{}, t.code), len(t.pieces) > 0
}

// Join completes the section of a unit with what Recorder.Ended had taken out before.
func Join(u *state.Unit, ended []*state.Unit) (state.Section, error) {
	t := &tap{}
	for _, x := range append(slices.Clone(ended), u) {
		before := t.pieces
		*t = tap{}
		if _, err := sections.Read(x, func(c *state.Coder, _ *none) { t.code(c) }); err != nil {
			return state.Section{}, err
		}
		t.pieces = append(before, t.pieces...)
	}
	slices.SortStableFunc(t.pieces, func(a, b *piece) int { return cmp.Compare(a.conn.ID, b.conn.ID) })
	return sections.Section(&none{}, t.code), nil
}
