package ops

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Gives is a set of what results give to later calls.
type Gives uint8

// What results give.
const (
	// Handle is the file handle of the call's subject; Outcome has it.
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
	// ManyItems is any number: READ_PLUS.
	ManyItems
)

// Reply is what is known of results in advance: how much memory a client has to provide.
// Arguments are named as in XDR.
type Reply struct {
	Items Items
	// Item is the argument that bounds the item, in bytes; empty if none does, and
	// the item counts as part of the rest.
	Item string
	// Rest is the argument that bounds the results as a whole, in bytes; with ManyItems, the items behind the first one, which a server may put
	// among the rest.
	Rest string
	// Room is how many bytes the results may take beyond a few hundred, if no argument
	// bounds them.
	Room int
}

// Outcome is what successful results say about the call. Entry.Outcome fills it in.
type Outcome struct {
	// Handle belongs to the object that was found or made; nil if there is none.
	// It aliases the results.
	Handle []byte
	// Moved is how many bytes were read or written.
	HasMoved bool
	Moved    uint64
	EOF      bool
	// State is the state id in the results: of a new state, or the next one of the state
	// that the arguments name. Delegation is the state id of a delegation. Each is nil if
	// there is none.
	State, Delegation *nfs4.Stateid4
	// Client and Session are a new client id and a new session id; nil if there is none.
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

// holds makes a Held for arguments of one type.
func holds[T any](f func(m *T) *nfs4.Stateid4) func(xdr.Message) *nfs4.Stateid4 {
	return func(m xdr.Message) *nfs4.Stateid4 {
		if t, ok := any(m).(*T); ok {
			return f(t)
		}
		return nil
	}
}
