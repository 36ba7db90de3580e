package ftrace

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Format is how a kernel lays out the record of an event, as it says in the file "format" of the event in tracefs.
type Format struct {
	ID uint16 // the first two bytes of the record

	kind   Kind
	name   []byte
	fields map[string]field
	takes  []take
	// The last address in text, since it is the same again and again.
	text string
	addr netip.AddrPort
}

// field is a part of a record.
type field struct {
	offset, size int
	dynamic      bool // its four bytes say where its value is, and how long that is
	text         bool // of characters
}

// take is what is read of a field.
type take struct {
	field
	part  part
	names map[uint64][]byte // of a number that the kernel prints as one of these
}

// part is a field of an Event, or a part of one.
type part uint8

const (
	partThread part = iota + 1
	partXID
	partTask
	partClient
	partBacklog
	partRoundTrip
	partExecute
	partExecuted
	partWakeup
	partCredits
	partHeader
	partHead
	partPages
	partTail
	partHandle
	partLength
	partOffset
	partPosition
	partSegment
	partAt
	partOf
	partQueue
	partCompletion
	partVersion
	partTransport
	partStatus
	partOperation
	partIndex
	partCount
	partProgram
	partProcedure
	partReadList
	partNamed
	partPeer
	partLocal
	partPeerText
	partPort
)

// parts are the fields of records by their names.
var parts = map[string]part{
	"common_pid": partThread, "xid": partXID, "task_id": partTask, "client_id": partClient, "backlog": partBacklog, "rtt": partRoundTrip,
	"execute": partExecute, "wakeup": partWakeup, "credits": partCredits, "hdrlen": partHeader, "headlen": partHead, "pagelen": partPages,
	"taillen": partTail, "handle": partHandle, "length": partLength, "offset": partOffset, "pos": partPosition, "position": partPosition,
	"segno": partSegment, "nents": partAt, "nsegs": partOf, "cq_id": partQueue, "completion_id": partCompletion, "vers": partVersion,
	"version": partVersion, "progname": partProgram, "service": partProgram, "procname": partProcedure, "procedure": partProcedure,
	"rtype": partReadList, "srcaddr": partLocal, "dstaddr": partPeer, "server": partLocal, "client": partPeer, "addr": partPeerText, "port": partPort, "xprt_id": partTransport, "error": partStatus, "op": partOperation,
	"program": partProgram, "resp_opcnt": partIndex, "args_opcnt": partCount,
}

// maxFormat and maxNames are bounds on what is read of a format.
const (
	maxFormat = 64 << 10
	maxNames  = 256
)

// NewFormat reads the text of a file "format".
func NewFormat(text string) (*Format, error) {
	if len(text) > maxFormat {
		return nil, fmt.Errorf("a format of %d bytes", len(text))
	}
	f := &Format{fields: make(map[string]field)}
	printed := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "name":
			f.name = []byte(strings.TrimSpace(value))
			f.kind = kinds[string(f.name)]
		case "ID":
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 16)
			if err != nil {
				return nil, fmt.Errorf("the number of an event: %w", err)
			}
			f.ID = uint16(n)
		case "field":
			if err := f.field(value); err != nil {
				return nil, err
			}
		case "print fmt":
			printed = value
		}
	}
	if _, ok := f.fields["common_pid"]; !ok || len(f.name) == 0 || f.ID == 0 {
		return nil, errors.New("no format of an event")
	}
	for name, x := range f.fields {
		t := take{field: x, part: parts[name]}
		switch {
		case f.kind == Request && name == "proc":
			t.part, t.names = partNamed, symbols(printed, name)
		case t.part == partReadList:
			t.names = symbols(printed, name)
		case t.part == partExecute && f.kind == Served:
			t.part = partExecuted
		case f.kind == Operation && name == "status":
			t.part = partStatus
		case f.kind == Operation && name == "name":
			t.part = partProcedure
		}
		if t.part != 0 && t.suits() {
			f.takes = append(f.takes, t)
		}
	}
	slices.SortFunc(f.takes, func(a, b take) int { return cmp.Compare(a.part, b.part) })
	return f, nil
}

// suits reports whether the field has the type that its part needs.
func (t *take) suits() bool {
	switch t.part {
	case partProgram, partProcedure, partPeerText, partPort:
		return t.text
	case partPeer, partLocal:
		return true
	}
	return !t.dynamic && (t.size == 1 || t.size == 2 || t.size == 4 || t.size == 8)
}

// field reads
//
//	__data_loc char[] progname;	offset:24;	size:4;	signed:0;
func (f *Format) field(line string) error {
	declared, rest, _ := strings.Cut(line, ";")
	x := field{dynamic: strings.Contains(declared, "__data_loc "), text: strings.Contains(declared, "char[]") || strings.Contains(declared, "char ")}
	for part := range strings.SplitSeq(rest, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), ":")
		n, err := strconv.ParseUint(value, 10, 16)
		switch {
		case key != "offset" && key != "size":
		case err != nil:
			return fmt.Errorf("the place of a field: %w", err)
		case key == "offset":
			x.offset = int(n)
		default:
			x.size = int(n)
		}
	}
	name := declared[strings.LastIndexAny(declared, " *")+1:]
	name, _, _ = strings.Cut(name, "[")
	f.fields[name] = x
	return nil
}

// symbols reads how a number is printed: __print_symbolic(REC->name, { 0, "inline" }, { 1, "pullup" }). It leaves out values that are not numbers.
func symbols(printed, name string) map[uint64][]byte {
	names := make(map[uint64][]byte)
	_, list, _ := strings.Cut(printed, "__print_symbolic(REC->"+name+",")
	list, _, _ = strings.Cut(list, ")")
	for entry := range strings.SplitSeq(list, "{") {
		value, quoted, _ := strings.Cut(entry, ",")
		n, err := strconv.ParseUint(strings.TrimSpace(value), 0, 64)
		quoted, _, _ = strings.Cut(quoted, "}")
		if s, err2 := strconv.Unquote(strings.TrimSpace(quoted)); err == nil && err2 == nil && len(names) < maxNames {
			names[n] = []byte(s)
		}
	}
	return names
}

// Has reports whether records have fields of an Event.
func (f *Format) Has(s Seen) bool {
	var seen uint64
	for i := range f.takes {
		seen |= 1 << f.takes[i].part
	}
	for _, g := range groups {
		if seen&g.parts == g.parts {
			s &^= g.seen
		}
	}
	return s == 0
}

var native = binary.NativeEndian

// Read reads a record into e, with the values that Parse finds in its text. Texts in e share the memory of the record.
func (f *Format) Read(record []byte, e *Event) {
	*e = Event{Name: f.name, Kind: f.kind}
	var at, of int32
	var seen uint64 // parts
	for i := range f.takes {
		t := &f.takes[i]
		if f.words(t, record, e) {
			seen |= 1 << t.part
			continue
		}
		n, ok := t.number(record)
		if !ok {
			continue
		}
		switch t.part {
		case partAt:
			at = int32(n)
		case partOf:
			of = int32(n)
		case partCompletion:
			if int32(n) < 0 {
				continue
			}
			e.Completion = uint32(n)
		case partReadList:
			e.ReadList = t.names[n]
		case partNamed:
			e.Procedure = t.names[n]
		default:
			numbers[t.part](e, n)
		}
		seen |= 1 << t.part
	}
	e.More = at < of
	for _, g := range groups {
		if seen&g.parts == g.parts {
			e.Seen |= g.seen
		}
	}
	e.limit()
}

// limit takes back times that do not fit into a number of nanoseconds.
func (e *Event) limit() {
	if max(e.Backlog, e.RoundTrip, e.Execute) >= maxMicros {
		e.Seen &^= Times
	}
	if e.Executed >= maxMicros {
		e.Seen &^= Execution
	}
	if e.Wakeup >= maxMicros {
		e.Seen &^= Waited
	}
}

// words reads a part that is text or an address. It reports false for numbers.
func (f *Format) words(t *take, record []byte, e *Event) bool {
	switch t.part {
	case partProgram:
		e.Program = t.string(record)
	case partProcedure:
		e.Procedure = t.string(record)
	case partPeerText:
		if s := t.string(record); string(s) != f.text {
			f.text = string(s)
			f.addr, _ = endpoint(s)
		}
		e.Peer = f.addr
	case partPort:
		if n, ok := decimal(t.string(record)); ok && n < 1<<16 && e.Peer.IsValid() {
			e.Peer = netip.AddrPortFrom(e.Peer.Addr(), uint16(n))
		}
	case partPeer:
		e.Peer = sockaddr(t.bytes(record))
	case partLocal:
		e.Local = sockaddr(t.bytes(record))
	default:
		return false
	}
	return true
}

// numbers write a number into an event.
var numbers = [partPort + 1]func(e *Event, n uint64){
	partThread:    func(e *Event, n uint64) { e.Thread = uint32(n) },
	partXID:       func(e *Event, n uint64) { e.XID = uint32(n) },
	partTask:      func(e *Event, n uint64) { e.Task = uint32(n) },
	partClient:    func(e *Event, n uint64) { e.Client = uint32(n) },
	partBacklog:   func(e *Event, n uint64) { e.Backlog = n },
	partRoundTrip: func(e *Event, n uint64) { e.RoundTrip = n },
	partExecute:   func(e *Event, n uint64) { e.Execute = n },
	partExecuted:  func(e *Event, n uint64) { e.Executed = n },
	partWakeup:    func(e *Event, n uint64) { e.Wakeup = n },
	partCredits:   func(e *Event, n uint64) { e.Credits = uint32(n) },
	partHeader:    func(e *Event, n uint64) { e.Header = uint32(n) },
	partHead:      func(e *Event, n uint64) { e.Head = uint32(n) },
	partPages:     func(e *Event, n uint64) { e.Pages = uint32(n) },
	partTail:      func(e *Event, n uint64) { e.Tail = uint32(n) },
	partHandle:    func(e *Event, n uint64) { e.Handle = uint32(n) },
	partLength:    func(e *Event, n uint64) { e.Length = uint32(n) },
	partOffset:    func(e *Event, n uint64) { e.Offset = n },
	partPosition:  func(e *Event, n uint64) { e.Position = uint32(n) },
	partSegment:   func(e *Event, n uint64) { e.Segment = uint32(n) },
	partQueue:     func(e *Event, n uint64) { e.Queue = uint32(n) },
	partVersion:   func(e *Event, n uint64) { e.Version = uint32(n) },
	partTransport: func(e *Event, n uint64) { e.Transport = uint32(n) },
	partStatus:    func(e *Event, n uint64) { e.Status = uint32(n) },
	partOperation: func(e *Event, n uint64) { e.Operation = uint32(n) },
	partIndex:     func(e *Event, n uint64) { e.Index = uint32(n) },
	partCount:     func(e *Event, n uint64) { e.Count = uint32(n) },
}

// groups are the parts that make what an Event has seen.
var groups = []struct {
	seen  Seen
	parts uint64
}{
	{XID, 1 << partXID},
	{Task, 1<<partTask | 1<<partClient},
	{Times, 1<<partBacklog | 1<<partRoundTrip | 1<<partExecute},
	{Execution, 1 << partExecuted},
	{Waited, 1 << partWakeup},
	{Credits, 1 << partCredits},
	{Header, 1 << partHeader},
	{Message, 1<<partHead | 1<<partPages | 1<<partTail},
	{Memory, 1<<partHandle | 1<<partLength | 1<<partOffset},
	{Completion, 1<<partQueue | 1<<partCompletion},
	{Number, 1 << partSegment},
	{Connected, 1 << partTransport},
	{Outcome, 1 << partStatus},
	{Numbered, 1 << partOperation},
	{Place, 1<<partIndex | 1<<partCount},
}

// number is the value of a field; false if the record ends before it.
func (x field) number(record []byte) (uint64, bool) {
	if x.offset > len(record)-x.size {
		return 0, false
	}
	switch v := record[x.offset : x.offset+x.size]; x.size {
	case 1:
		return uint64(v[0]), true
	case 2:
		return uint64(native.Uint16(v)), true
	case 4:
		return uint64(native.Uint32(v)), true
	case 8:
		return native.Uint64(v), true
	}
	return 0, false
}

// bytes returns the contents of an array field.
func (x field) bytes(record []byte) []byte {
	offset, size := x.offset, x.size
	if x.dynamic {
		n, _ := field{offset: x.offset, size: 4}.number(record)
		offset, size = int(n&0xffff), int(n>>16)
	}
	if offset > len(record)-size {
		return nil
	}
	return record[offset : offset+size]
}

// string returns a text without the zero that ends it.
func (x field) string(record []byte) []byte {
	s := x.bytes(record)
	if i := bytes.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return s
}

// Families of addresses (linux/socket.h).
const (
	familyIPv4 = 2
	familyIPv6 = 10
)

// sockaddr reads an address and its port; not valid if it is of another family.
func sockaddr(s []byte) netip.AddrPort {
	if len(s) >= 8 {
		port := binary.BigEndian.Uint16(s[2:])
		switch family := native.Uint16(s); {
		case family == familyIPv4:
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s[4:])), port)
		case family == familyIPv6 && len(s) >= 24:
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(s[8:])).Unmap(), port)
		}
	}
	return netip.AddrPort{}
}
