// Package fields is the table of a transaction's attributes: what each is called, what type and unit it has,
// what it means, how it is read, and which formats lack it.
//
// To add an attribute:
//  1. add an entry to the table (table.go); if reading it takes more than a line, write a function in read.go;
//  2. describe its key in docs/schemas/transaction-1.schema.json;
//  3. run go generate ./analyze/filter, and go test ./test/docs -run Reference -update.
//
// All formats then have it, unless Missing and Why say that one lacks it. A list of objects, or of lists, has to be written for ndjson
// (lists.go) and Parquet (lists.go), too. test/docs compares all formats with the table.
package fields

import (
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Field is an attribute of a transaction.
type Field struct {
	// Name is a key of rpcrdma.transaction/1. Keys of objects and of members of arrays are joined with dots.
	Name string
	Type Type
	Unit Unit
	// Doc says in a phrase what it means.
	Doc string
	// Read passes its values on, in the order in which they appear. It is nil for a Group. The table has it for attributes of which there
	// may be several values; for others it is made of one of the functions that follow.
	Read func(r *Reader, v *rpc.View)
	// Uint is the value of a Number, a Count, a Duration, a Time or a Boolean, and whether there is one.
	Uint func(r *Reader, v *rpc.View) (uint64, bool)
	// Bytes is the value of a Text or of Bytes; nil if there is none. It is valid until the next one is read.
	Bytes func(r *Reader, v *rpc.View) []byte
	// Symbol is the value of a Symbol; empty if there is none.
	Symbol func(r *Reader, v *rpc.View) string

	// Several means that one transaction may have several values.
	Several bool

	// Symbols lists the values of a Symbol or an Enum, if they are the same in all protocols. Otherwise Words
	// says whose names they are.
	Symbols func() []string
	Words   Words
	Joined  bool // the symbols are joined by "+", some with a count: LOOKUP*2+GETATTR
	Cost    Cost
	Blame   bool // Read needs Transaction.Blame

	Absent Absent // what ndjson has if there is no value
	Of     Scope  // which transactions have the same value
	Wide   bool   // a Number that may need all 64 bits

	// Attribute is the name in OTLP if it is not "rpcrdma." and Name.
	Attribute string

	// Recorded says whether a kernel that is the source of a transaction has recorded the attribute; nil: what reads the value knows that.
	// In JSON, null stands for one that it has not.
	Recorded func(*transaction.Kernel) bool

	// Missing are the formats without this attribute, and Why says the reason.
	Missing Format
	Why     string
}

// Unrecorded reports whether a kernel is the source of a transaction, and has not recorded the attribute.
func (f *Field) Unrecorded(v *rpc.View) bool {
	return f.Recorded != nil && v.Tx.Kernel != nil && !f.Recorded(v.Tx.Kernel)
}

// Type is the type of the values of a Field.
type Type uint8

// The types of values.
const (
	Group    Type = iota // an object that holds other attributes
	Number               // an unsigned number
	Count                // a number of which 0 means "none"
	Duration             // a signed number of nanoseconds
	Time                 // nanoseconds since 1970
	Boolean
	Text
	Symbol // a name
	Enum   // a number with a name, if there is one for it
	Address
	Bytes
)

// Unit is what a number counts.
type Unit uint8

// The units of numbers.
const (
	None Unit = iota
	Nanoseconds
	Octets
)

func (u Unit) String() string { return [...]string{"", "nanoseconds", "bytes"}[u] }

// Format is a set of formats.
type Format uint8

// The formats that show attributes of transactions.
const (
	Filter   Format = 1 << iota // display filter and -T fields
	NDJSON                      // rpcrdma.transaction/1: ndjson, json, show, and the JSON schema
	Parquet                     // columns of Parquet files
	Timeline                    // arguments of slices in rpcrdma.trace/1
	Journal                     // entries of the systemd journal; -e adds the others
	OTLP                        // attributes of spans

	everything = Filter | NDJSON | Parquet | Timeline | Journal | OTLP
)

// In reports whether a format has the attribute.
func (f *Field) In(format Format) bool { return f.Missing&format == 0 }

// Absent is what an object of JSON has in place of a value.
type Absent uint8

// What stands for no value.
const (
	Omitted Absent = iota // not even the key
	Null
	Empty // an empty string
	Zero
	Never // there is always a value
)

// Scope says which transactions have the same value, so that writers of rows can keep the text.
type Scope uint8

// The scopes of values.
const (
	Each      Scope = iota // none
	OfParties              // transactions of the same connection and direction
	OfProgram              // transactions of the same program, version and protection, with the same delivery, and with headers of the same types and credits
	OfKind                 // the same, of the same call with the same status
	OfPlain                // transactions without chunks and RDMA operations
	OfClean                // complete ones without retransmissions, waits, losses, notes and remote invalidation, of packets
	OfShort                // those with no time in a phase but the server's
	OfBare                 // those about no more of a file than its handle and its name
)

// Words is a vocabulary of the protocols.
type Words uint8

// The vocabularies of the protocols.
const (
	Fixed Words = iota // none: see Symbols
	Programs
	Procedures
	Operations
	ProceduresAndOperations
	Statuses
)

// Cost tells expensive attributes from cheap ones.
type Cost int

// The costs of reading an attribute.
const (
	Ready    Cost = iota // it is there at once
	Decoded              // it takes several messages
	Resolved             // it takes the names of files, too
)

// Values takes the values of an attribute one by one.
type Values interface {
	Uint(uint64)
	Count(uint64)
	Duration(time.Duration)
	Time(ns int64)
	Bool(bool)
	Text(string)
	TextBytes([]byte)
	Symbol(string)
	Enum(code uint32, symbol string) // symbol is empty if there is none
	Addr(netip.Addr)                 // not valid: there is none
	Hex([]byte)
	// Stopped reports whether further values are of no use.
	Stopped() bool
}

// Reader passes values of attributes on to Values. Its scratch memory spares allocations, so only one goroutine
// at a time may use it.
type Reader struct {
	Values

	buf    []byte
	sys    oncrpc.Sys
	listed map[string]string // operations as listed
	keys   rpc.ConnectionKeys
	phases transaction.Phases
	timed  timed
	path   []byte
	looked bool // for the path
}

// timed says whether a Reader has the phases of the transaction.
type timed uint8

const (
	notAsked timed = iota
	hasPhases
	noPhases
)

// Reset prepares the Reader for another transaction.
func (r *Reader) Reset() { r.timed, r.looked = notAsked, false }

// Phases returns the phases of the transaction, computed once after Reset; nil if it has none.
func (r *Reader) Phases(v *rpc.View) *transaction.Phases {
	if r.timed == hasPhases {
		return &r.phases
	}
	return r.setPhases(v)
}

func (r *Reader) setPhases(v *rpc.View) *transaction.Phases {
	if r.timed == notAsked {
		if r.timed = noPhases; v.Tx.SetPhases(&r.phases) {
			r.timed = hasPhases
			return &r.phases
		}
	}
	return nil
}

// All is the table: the keys of rpcrdma.transaction/1, then names for filters only. It must not be
// changed.
var All = sync.OnceValue(func() []Field {
	list := table()
	for i := range list {
		list[i].complete()
	}
	return list
})

// complete makes Read of the function that reads the only value.
func (f *Field) complete() {
	switch {
	case f.Uint != nil:
		pass := numbers[f.Type]
		f.Read = func(r *Reader, v *rpc.View) {
			if n, ok := f.Uint(r, v); ok {
				pass(r, n)
			}
		}
	case f.Bytes != nil:
		f.Read = func(r *Reader, v *rpc.View) {
			if b := f.Bytes(r, v); b == nil {
				return
			} else if f.Type == Bytes {
				r.Hex(b)
			} else {
				r.TextBytes(b)
			}
		}
	case f.Symbol != nil:
		f.Read = func(r *Reader, v *rpc.View) {
			if s := f.Symbol(r, v); s != "" {
				r.Symbol(s)
			}
		}
	}
}

// numbers pass a number on as what it is.
var numbers = map[Type]func(*Reader, uint64){
	Number:   func(r *Reader, n uint64) { r.Uint(n) },
	Count:    func(r *Reader, n uint64) { r.Count(n) },
	Duration: func(r *Reader, n uint64) { r.Duration(time.Duration(n)) },
	Time:     func(r *Reader, n uint64) { r.Time(int64(n)) },
	Boolean:  func(r *Reader, n uint64) { r.Bool(n != 0) },
}
