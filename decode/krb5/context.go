package krb5

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// state is what is known of a context.
type state uint8

const (
	keyed   state = iota // its keys are known
	closed               // its creation was seen, but its keys are not known: see problem
	unknown              // its creation was not captured, or was forgotten
)

// context is a security context of RPCSEC_GSS.
type context struct {
	place
	table *table
	made  which // transaction that has created it
	state state

	ticket  ticket
	client  string
	problem string // why it is closed
	window  uint32

	initiator keys // the Authenticator's subkey, or else the session key
	acceptor  keys // the AP-REP's subkey; no value without one
	session   Key
	scratch   [tokenHeader]byte
	number    [4]byte

	destroyed uint64          // packet; 0: not
	highest   uint32          // sequence number
	used      *[sequences]use // nil until the first genuine call
	told      which           // transaction that says the problem, if needed is set
	refused   which           // the last transaction that was counted as such
	needed    bool            // something of it could not be read
	opened    bool            // something of it could be read

	older      *context // of the same place
	prev, next *context // by use
}

// ticket is what an AP-REQ tells without any key.
type ticket struct {
	service string
	kvno    uint32
	etype   EType
}

// place is the server, on all its ports, that a handle belongs to. Servers count their handles from the same number, and equal addresses in
// different networks are different servers.
type place struct {
	server netip.Addr
	tenant uint64
	handle string
}

// use is a sequence number that a transaction had.
type use struct {
	by     which
	number uint32
}

// which tells a transaction from the others of a capture.
type which struct {
	serial uint64
	packet uint64
}

func whichOf(tx *transaction.Transaction) which { return which{tx.Serial(), tx.First().Number} }

// sequences is how many sequence numbers of a context are remembered. The
// windows of servers have 128.
const sequences = 256

// maxOlder bounds the contexts of one place: handles may be used again, by a server that has been restarted
// or by another one after the same address.
const maxOlder = 4

// maxHandle bounds handles in bytes. Those of servers have 4 to 16.
const maxHandle = 256

// table holds contexts, the one used last first.
type table struct {
	places  map[place]*context
	first   *context
	last    *context
	count   int
	limit   int
	evicted uint64
	rotated []byte
}

// find is the newest context of that handle at the server of a transaction.
func (t *table) find(tx *transaction.Transaction, handle []byte) *context {
	return t.places[place{tx.Server().Addr, tx.Connection.Tenant, string(handle)}]
}

// add puts a context before those of the same place.
func (t *table) add(c *context) {
	c.table = t
	c.older = t.places[c.place]
	t.places[c.place] = c
	t.front(c)
	t.count++
	n := 1
	for o := c; o.older != nil; o = o.older {
		if n++; n > maxOlder {
			t.unlink(o.older)
			o.older = nil
			break
		}
	}
	for t.count > t.limit {
		t.evicted++
		t.drop(t.last)
	}
}

// drop forgets a context.
func (t *table) drop(c *context) {
	if p := t.places[c.place]; p != c {
		for p.older != c {
			p = p.older
		}
		p.older = c.older
	} else if c.older != nil {
		t.places[c.place] = c.older
	} else {
		delete(t.places, c.place)
	}
	t.unlink(c)
}

func (t *table) unlink(c *context) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		t.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		t.last = c.prev
	}
	c.prev, c.next = nil, nil
	t.count--
}

func (t *table) front(c *context) {
	c.next = t.first
	if t.first != nil {
		t.first.prev = c
	} else {
		t.last = c
	}
	t.first = c
}

// touch notes that a context is in use.
func (t *table) touch(c *context) {
	if t.first != c {
		t.unlink(c)
		t.front(c)
		t.count++
	}
}

// at is the place of a context of the server of a transaction.
func at(tx *transaction.Transaction, handle []byte) place {
	return place{tx.Server().Addr, tx.Connection.Tenant, string(handle)}
}
