// Package kernel joins transactions with what the Linux kernels at the ends
// recorded about them: trace events of each call, and the counters of
// /proc/self/mountstats. What the wire does not show becomes visible so: how
// long a call waited in the client before it was sent, what the client spent
// between the wire and its own clock, and how much of the server's phase was
// execution.
//
// A Join first reads the kernel's files, then is given the transactions, and
// at the end says what came out.
package kernel

import (
	"bufio"
	"errors"
	"io"
	"net/netip"

	"github.com/rpcrdma/toolkit/analyze/kernel/mountstats"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// Schema is the value of the key "schema" of a Result.
const Schema = "rpcrdma.kernel/1"

// Options bound what is kept. The zero value is a good choice.
type Options struct {
	// Calls is how many calls of clients, how many requests of servers and how
	// many transactions are kept for the join; default 65536. Each takes some
	// 200 bytes.
	Calls int
}

const (
	defaultCalls = 1 << 16
	maxNames     = 4096 // operations, addresses, rpc_clnts by name
	maxWireKeys  = 8192 // sums over transactions for mountstats
	maxOpen      = 1 << 16
	maxFiles     = 1024
	maxListed    = 100 // violations listed
)

// Join is a join under way. It is not safe for concurrent use.
type Join struct {
	limit int
	files []File
	names names[operation]
	addrs names[netip.Addr]
	own   []map[uint16]bool // of each file: addresses of the traced client, as far as the trace names them

	calls    []call
	callAt   map[uint32]int32 // XID: newest record, which leads to older ones
	requests []request
	reqAt    map[uint32]int32
	wires    []wire
	wireAt   map[uint32]int32

	mounts []*mountstats.Mount
	sums   sums
	counts Counts
	// callbacks are records of servers that are replies to their own calls.
	callbacks int
	traced    [2]bool // a trace of a client, of a server was read
}

// Counts say what became of records and transactions.
type Counts struct {
	Transactions uint64 `json:"transactions"`
	// Backward are calls of servers, which are not joined.
	Backward uint64 `json:"backward"`
	// CallsBeyond, RequestsBeyond and TransactionsBeyond were left out because
	// of the limits.
	CallsBeyond        uint64 `json:"calls_beyond_limit"`
	RequestsBeyond     uint64 `json:"requests_beyond_limit"`
	TransactionsBeyond uint64 `json:"transactions_beyond_limit"`
	// SumsBeyond are transactions that the comparison with mountstats lacks.
	SumsBeyond uint64 `json:"sums_beyond_limit"`
}

// New makes a Join.
func New(o Options) *Join {
	if o.Calls <= 0 {
		o.Calls = defaultCalls
	}
	return &Join{
		limit: o.Calls, callAt: make(map[uint32]int32), reqAt: make(map[uint32]int32), wireAt: make(map[uint32]int32),
		sums: sums{by: make(map[sumKey]*sum), unnamed: make(map[unnamedKey]uint64), open: make(map[openKey]bool)},
	}
}

// File is a file of the kernel that was read.
type File struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // ftrace, mountstats
	// Of a trace: events, and those that the ring buffer lost.
	Events uint64 `json:"events,omitempty"`
	Lost   uint64 `json:"events_lost,omitempty"`
	// Calls (of a client) and Requests (to a server) in it.
	Calls    int `json:"calls,omitempty"`
	Requests int `json:"requests,omitempty"`
	Mounts   int `json:"mounts,omitempty"`
	// Unread are lines that could not be read, or not all that is wanted of them.
	Unread uint64 `json:"unread_lines,omitempty"`
}

// ReadMountstats reads a copy of /proc/self/mountstats.
func (j *Join) ReadMountstats(name string, r io.Reader) error {
	list, s, err := mountstats.Parse(r)
	if len(j.files) < maxFiles {
		j.mounts = append(j.mounts, list...)
		j.files = append(j.files, File{Name: name, Kind: "mountstats", Mounts: len(list), Unread: s.Malformed + s.Beyond})
		j.own = append(j.own, nil)
	}
	return err
}

// ReadTrace reads trace events of a client, of a server, or of both: text, or a recording.
func (j *Join) ReadTrace(name string, r io.Reader) error {
	if len(j.files) >= maxFiles {
		return nil
	}
	t := tracer{j: j, source: uint16(len(j.files)), own: make(map[uint16]bool)}
	calls, requests := len(j.calls), len(j.requests)
	b := bufio.NewReader(r)
	scan := ftrace.Scan
	if head, _ := b.Peek(len(pcapng)); string(head) == pcapng {
		scan = recorded
	}
	s, err := scan(b, t.event)
	f := File{
		Name: name, Kind: "ftrace", Events: s.Events, Lost: s.Lost, Unread: s.Other + s.Long + t.unread,
		Calls: len(j.calls) - calls, Requests: len(j.requests) - requests,
	}
	j.traced[0] = j.traced[0] || f.Calls > 0
	j.traced[1] = j.traced[1] || f.Requests > 0
	j.files = append(j.files, f)
	j.own = append(j.own, t.own)
	return err
}

// pcapng is how a recording begins.
const pcapng = "\x0a\x0d\x0d\x0a"

// recorded is ftrace.Scan for recordings.
func recorded(r io.Reader, f func(*ftrace.Event)) (s ftrace.Stats, err error) {
	c, err := capture.NewReader(r, "", capture.Options{})
	if err != nil {
		return s, err
	}
	defer c.Close()
	var e ftrace.Event
	var b capture.Batch
	for err = c.Read(&b); err == nil; err = c.Read(&b) {
		for i := range b.Packets {
			p := &b.Packets[i]
			if p.Link != capture.LinkTrace || !e.Decode(p.Data) {
				s.Other++
				continue
			}
			e.Time = p.Time
			s.Events++
			f(&e)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return s, err
}

// operation is what a call asks for, in the words of one side.
type operation struct {
	program string
	version uint32
	name    string
}

// names gives numbers to values, up to a limit; 0 stands for all others.
type names[T comparable] struct {
	list []T
	at   map[T]uint16
}

func (n *names[T]) number(v T) uint16 {
	if i, ok := n.at[v]; ok {
		return i
	}
	if n.at == nil {
		n.at = make(map[T]uint16)
		n.list = make([]T, 1) // 0 is the zero value
		var zero T
		n.at[zero] = 0
		if v == zero {
			return 0
		}
	}
	if len(n.list) >= maxNames {
		return 0
	}
	i := uint16(len(n.list))
	n.list = append(n.list, v)
	n.at[v] = i
	return i
}

func (n *names[T]) value(i uint16) (v T) {
	if int(i) < len(n.list) {
		v = n.list[i]
	}
	return v
}
