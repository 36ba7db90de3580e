package ftrace

import (
	"encoding/binary"
	"net/netip"
)

// Append adds the record of an event to b, as recordings of live events hold it: its kind, its numbers in the order of each, in the form
// of encoding/binary's Uvarint, and its texts and addresses after their length. Time and Rest are not in it.
func (e *Event) Append(b []byte) []byte {
	c := codec{b: append(b, byte(e.Kind))}
	c.event(e)
	return c.b
}

// Decode reads what a packet of events holds: a record of Append, or a line. The Event shares its memory.
func (e *Event) Decode(data []byte) bool {
	if len(data) == 0 || Kind(data[0]) == Other || Kind(data[0]) >= numKinds {
		return e.Parse(data)
	}
	*e = Event{Kind: Kind(data[0])}
	e.Name = names[e.Kind]
	c := codec{b: data[1:], reads: true}
	c.event(e)
	e.limit()
	return !c.bad && len(c.b) == 0
}

// names has the name of each kind of event.
var names = func() (list [32][]byte) {
	for _, k := range Events {
		list[k.Kind] = []byte(k.Name)
	}
	list[Transport], list[Counter] = []byte("transport"), []byte("counter")
	return list
}()

// codec writes a record, or reads one.
type codec struct {
	b     []byte
	reads bool
	bad   bool
}

// event writes or reads the fields that an event of its kind has.
func (c *codec) event(e *Event) {
	number(c, &e.Thread)
	number(c, &e.Seen)
	number(c, &e.XID)
	switch e.Kind {
	case ChunkRead, ChunkWrite, ChunkReply, Marshal, Reply, Latency, Granted, Failed, FailedOperation:
		c.numbers(&e.Task, &e.Client)
	case Threshold, Found, CallbackCall, CallbackReply, Dequeued, Process, Served:
		c.address(&e.Peer)
		c.address(&e.Local)
		number(c, &e.Executed)
		number(c, &e.Wakeup)
	case ReadSegment, WriteSegment, Request, Returned:
		c.numbers(&e.Queue, &e.Completion)
	}
	switch e.Kind {
	case ChunkRead, ChunkWrite, ChunkReply, ReadSegment, WriteSegment, Returned:
		c.numbers(&e.Handle, &e.Length)
		number(c, &e.Offset)
		c.numbers(&e.Position, &e.Segment)
		c.truth(&e.More)
	case Marshal, Reply, Request:
		c.numbers(&e.Header, &e.Head, &e.Pages, &e.Tail, &e.Credits)
		c.text(&e.ReadList)
	case Latency:
		number(c, &e.Backlog)
		number(c, &e.RoundTrip)
		number(c, &e.Execute)
	}
	switch e.Kind {
	case Latency, Request, Process, Served, Operation, Failed, Transport, Counter:
		number(c, &e.Version)
		c.text(&e.Program)
		c.text(&e.Procedure)
	}
	switch e.Kind {
	case Transport:
		c.address(&e.Peer)
		c.address(&e.Local)
	case Counter:
		number(c, &e.Grown)
	}
	// What recordings of version 2 do not have.
	if e.Has(Connected) {
		number(c, &e.Transport)
	}
	if e.Has(Outcome) {
		number(c, &e.Status)
	}
	if e.Has(Numbered) {
		number(c, &e.Operation)
	}
	if e.Has(Place) {
		c.numbers(&e.Index, &e.Count)
	}
}

func (c *codec) numbers(list ...*uint32) {
	for _, to := range list {
		number(c, to)
	}
}

func number[T Seen | uint32 | uint64](c *codec, to *T) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, uint64(*to))
		return
	}
	n, size := binary.Uvarint(c.b)
	if size <= 0 || uint64(T(n)) != n {
		c.b, c.bad = nil, true
		return
	}
	*to, c.b = T(n), c.b[size:]
}

func (c *codec) truth(to *bool) {
	var n uint32
	if *to {
		n = 1
	}
	number(c, &n)
	*to = n == 1
}

func (c *codec) text(to *[]byte) {
	n := uint32(len(*to))
	switch number(c, &n); {
	case !c.reads:
		c.b = append(c.b, *to...)
	case uint64(n) > uint64(len(c.b)):
		c.b, c.bad = nil, true
	default:
		*to, c.b = c.b[:n:n], c.b[n:]
	}
}

// address takes 4 or 16 bytes and the port; nothing if it is not valid.
func (c *codec) address(to *netip.AddrPort) {
	if !c.reads {
		ip := to.Addr().AsSlice()
		c.b = append(append(c.b, byte(len(ip))), ip...)
		c.b = binary.BigEndian.AppendUint16(c.b, to.Port())
		return
	}
	var ip []byte
	c.text(&ip)
	a, ok := netip.AddrFromSlice(ip)
	if c.bad || len(c.b) < 2 {
		c.b, c.bad = nil, true
		return
	}
	if ok {
		*to = netip.AddrPortFrom(a, binary.BigEndian.Uint16(c.b))
	}
	c.b = c.b[2:]
}
