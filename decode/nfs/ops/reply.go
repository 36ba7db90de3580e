package ops

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Gives says what results hold that later calls refer to, in bits.
type Gives uint8

// What results give.
const (
	// Handle is the file handle of the call's subject; Outcome tells it.
	Handle Gives = 1 << iota
	// Handles: the file handles of a directory's entries.
	Handles
	// Client is a client id, Session a session.
	Client
	Session
	// State is the state id of something new: an open, a lock, a delegation, a
	// layout, a copy under way.
	State
)

// Has reports whether results give any of these.
func (g Gives) Has(any Gives) bool { return g&any != 0 }

// Items says how many data items of the results may travel in Write chunks (RFC
// 5532 and RFC 8267, the upper layer bindings of NFS).
type Items uint8

// Numbers of items.
const (
	NoItem Items = iota
	OneItem
	// ManyItems is as many as there are: READ_PLUS.
	ManyItems
)

// Reply is what can be known of results before they come: what a client has to
// provide memory for. Arguments are named as in XDR.
type Reply struct {
	Items Items
	// Item is the argument that bounds the item, in bytes; empty if none does, and
	// the item counts as part of the rest.
	Item string
	// Rest is the argument that bounds the results as a whole, in bytes.
	Rest string
	// Room is how many bytes the results may take beyond a few hundred, where no
	// argument says so.
	Room int
}

// Outcome is what successful results say of the call. It is filled by
// Entry.Outcome.
type Outcome struct {
	// Handle belongs to the object that was found or made; nil if there is none.
	// It aliases the results.
	Handle []byte
	// Moved is how many bytes were read or written.
	HasMoved bool
	Moved    uint64
	EOF      bool
	// State is the state id that the results return: of something new, or the new one
	// of the state that the arguments name. Delegation is that of a delegation beside
	// it. Both are nil if there is none.
	State, Delegation *nfs4.Stateid4
	// Client and Session are what the results give to a client; nil if nothing.
	Client  *uint64
	Session *[16]byte
}

func (o *Outcome) moved(n uint64) { o.HasMoved, o.Moved = true, n }

// gets makes an outcome of results of one type.
func gets[T any](f func(m *T, o *Outcome)) func(xdr.Message, *Outcome) {
	return func(m xdr.Message, o *Outcome) {
		if t, ok := any(m).(*T); ok {
			f(t, o)
		}
	}
}

// holds tells which state id arguments of one type need.
func holds[T any](f func(m *T) *nfs4.Stateid4) func(xdr.Message) *nfs4.Stateid4 {
	return func(m xdr.Message) *nfs4.Stateid4 {
		if t, ok := any(m).(*T); ok {
			return f(t)
		}
		return nil
	}
}
