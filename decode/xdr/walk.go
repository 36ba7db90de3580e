package xdr

// Visitor receives the decoded fields of a message, in the order of the wire.
// Generated types call it from their Walk methods; the tree, the field output,
// ndjson and the display filter are Visitors.
//
// name is the field's name in the protocol's XDR ("what.dir" is two levels:
// Begin "what", then "dir").
type Visitor interface {
	// Begin opens a structure, a union or one element of an array. typ is the
	// XDR name of its type; index is the element's number, -1 outside arrays.
	Begin(name, typ string, index int)
	End()
	// Uint is an unsigned integer of any width, Int a signed one.
	Uint(name string, v uint64)
	Int(name string, v int64)
	Bool(name string, v bool)
	// Enum is an enumeration; symbol is empty if the value is not defined.
	Enum(name string, v uint32, symbol string)
	// Flags is a bit mask; symbols names its set bits ("A|B"), empty if none
	// is defined.
	Flags(name string, v uint64, symbols string)
	// Bytes is an opaque, String a text (not necessarily UTF-8).
	Bytes(name string, v []byte)
	String(name string, v []byte)
	// Data is file data or a link text that may live in a chunk.
	Data(name string, d Data)
	// Time is seconds and nanoseconds since 1970-01-01.
	Time(name string, sec int64, nsec uint32)
}

// Nameless is a Visitor that does not look at the symbols of Flags, which then
// need not be made.
type Nameless interface {
	Visitor
	Nameless()
}
