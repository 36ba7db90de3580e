// Package fields is the table of a transaction's attributes: what each is called, what type and unit it has,
// what it means, how it is read, and which formats lack it.
//
// To add an attribute:
//  1. add an entry to the table (table.go); if reading it takes more than a line, write a function in read.go;
//  2. write it in analyze/ndjson and analyze/parquet, or say in Missing and Why which of them lacks it;
//  3. describe its key in docs/schema.md and docs/schemas/transaction-1.schema.json;
//  4. run go generate ./analyze/filter: the filter, -T fields and docs/filter.md have it;
//  5. go test ./test/docs compares the formats with the table.
package fields

import (
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Field is an attribute of a transaction.
type Field struct {
	// Name is a key of rpcrdma.transaction/1. Keys of objects and of members of arrays are joined with dots.
	Name string
	Type Type
	Unit Unit
	// Doc says in a phrase what it means.
	Doc string
	// Read passes its values on, in the order in which they appear. It is nil for a Group.
	Read func(r *Reader, v *rpc.View)

	// Symbols lists the values of a Symbol or an Enum, if they are the same in all protocols. Otherwise Words
	// says whose names they are.
	Symbols func() []string
	Words   Words
	Joined  bool // the symbols are joined by "+", some with a count: LOOKUP*2+GETATTR
	Cost    Cost
	Blame   bool // Read needs Transaction.Blame

	// Missing are the formats without this attribute, and Why says the reason.
	Missing Format
	Why     string
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
	Filter  Format = 1 << iota // display filter and -T fields
	NDJSON                     // rpcrdma.transaction/1: ndjson, json, show, and the JSON schema
	Parquet                    // columns of Parquet files
)

// In reports whether a format has the attribute.
func (f *Field) In(format Format) bool { return f.Missing&format == 0 }

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
}

// All is the table: the keys of rpcrdma.transaction/1, then names for filters only. It must not be
// changed.
var All = sync.OnceValue(table)
