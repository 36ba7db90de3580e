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
	if len(r.ended) >= maxSaved {
		r.lost++
		return
	}
	k := state.NewWriter(nil)
	c.code(k)
	r.ended = append(r.ended, &piece{seen: state.NewSeen(c.Connection, state.Calls{}), body: k.Bytes(), id: c.ID})
}

// Section encodes what was recorded; inputs are the names of the captures, and a is nil if it is not known.
func (r *Recorder) Section(inputs []string, a *decode.Account) state.Section {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &tap{inputs: inputs, pieces: r.ended, lost: r.lost, more: r.more}
	if a != nil {
		t.account = account.New(a)
	}
	slices.SortFunc(t.pieces, func(a, b *piece) int { return cmp.Compare(a.id, b.id) })
	for _, p := range t.pieces {
		if k := r.calls[p.id]; k != nil {
			p.seen.Calls = k.calls
			p.near, p.timed = k.near.Value()
		}
	}
	return sections.Section(&none{}, t.code)
}
