package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// summary counts transactions by program and operation.
type summary struct {
	rows   map[operationKey]*operationCount
	recent [64]recentRow // the map costs several times as much

	states      [4]uint64
	retransmits uint64
	fabrics     [rdma.Fabrics]uint64 // connections
}

type operationKey struct {
	program, version uint32
	minor            uint32 // or unread
	named            bool
	operation        string
}

// unread is the minor version of a COMPOUND that is cut, or malformed, before it.
const unread = math.MaxUint32

// recentRow is the row of the clean calls of a procedure and, if that is COMPOUND, with the same operations. Only callbacks have one procedure
// for several programs.
type recentRow struct {
	procedure  *xdr.Procedure
	program    uint32
	operations uint64 // see rpc.View.CompoundKind
	row        *operationCount
}

type operationCount struct {
	program      string
	operation    string
	count        uint64
	errors       uint64
	unread       uint64 // of which nobody can say whether they have failed
	timed        uint64
	sum, longest time.Duration
	callBytes    uint64
	replyBytes   uint64
}

// maxOperations bounds the rows: peers choose program and procedure numbers.
const maxOperations = 4096

func newSummary() *summary { return &summary{rows: make(map[operationKey]*operationCount)} }

func (s *summary) closed(c *rdma.Connection) {
	if c.MergedInto == nil && int(c.Fabric) < len(s.fabrics) {
		s.fabrics[c.Fabric]++
	}
}

func (s *summary) add(v *rpc.View) {
	var r *operationCount
	if v.Clean() {
		p, program, operations := v.Procedure, v.Tx.Program, v.CompoundKind()
		at := &s.recent[(uint64(p.Number)+5*uint64(program)+operations)%uint64(len(s.recent))]
		if at.procedure != p || at.program != program || at.operations != operations {
			*at = recentRow{p, program, operations, s.find(v)}
		}
		r = at.row
	} else if r = s.find(v); v.Unread() {
		r.unread++
	}
	s.count(r, v.Tx, v.Failed())
}

func (s *summary) count(r *operationCount, tx *transaction.Transaction, failed bool) {
	r.count++
	if failed {
		r.errors++
	}
	if d, ok := tx.Took(); ok {
		r.timed++
		r.sum += min(d, math.MaxInt64-r.sum)
		r.longest = max(r.longest, d)
	}
	r.callBytes += tx.Call.Bytes
	r.replyBytes += tx.Reply.Bytes
	s.states[tx.State]++
	s.retransmits += uint64(tx.Retransmits)
}

// find is the row that a transaction belongs to, by all that distinguishes operations.
func (s *summary) find(v *rpc.View) *operationCount {
	k := operationKey{program: v.Tx.Program, version: v.Tx.Version, minor: unread, named: v.Tx.Named, operation: text.Operation(v)}
	if minor, ok := v.MinorVersion(); ok || !v.Compound() {
		k.minor = minor
	}
	if r := s.rows[k]; r != nil {
		return r
	}
	return s.row(k, string(text.Program(nil, v)))
}

// row makes the row of an operation, or finds the one for those beyond the limit.
func (s *summary) row(k operationKey, program string) *operationCount {
	if len(s.rows) >= maxOperations {
		k = operationKey{operation: "others"}
		if r := s.rows[k]; r != nil {
			return r
		}
	}
	r := &operationCount{program: program, operation: k.operation}
	s.rows[k] = r
	return r
}

// compare gives keys an order that does not depend on anything else.
func (k operationKey) compare(o operationKey) int {
	named := 0
	switch {
	case k.named && !o.named:
		named = 1
	case !k.named && o.named:
		named = -1
	}
	return cmp.Or(cmp.Compare(k.program, o.program), cmp.Compare(k.version, o.version), cmp.Compare(k.minor, o.minor),
		cmp.Compare(k.operation, o.operation), named)
}

// merge adds the transactions of another summary; its connections are not counted.
func (s *summary) merge(o *summary) {
	for _, k := range slices.SortedFunc(maps.Keys(o.rows), operationKey.compare) {
		from := o.rows[k]
		r := s.rows[k]
		if r == nil {
			r = s.row(k, from.program)
		}
		r.count += from.count
		r.errors += from.errors
		r.unread += from.unread
		r.timed += from.timed
		r.sum += min(from.sum, math.MaxInt64-r.sum)
		r.longest = max(r.longest, from.longest)
		r.callBytes += from.callBytes
		r.replyBytes += from.replyBytes
	}
	for i, n := range o.states {
		s.states[i] += n
	}
	s.retransmits += o.retransmits
}

// failures is how many calls have failed, with a question mark if some may have.
func failures(r *operationCount) string {
	if r.unread > 0 {
		return fmt.Sprint(r.errors) + "?"
	}
	return fmt.Sprint(r.errors)
}

var summaryHeader = []string{"PROGRAM", "OPERATION", "COUNT", "ERRORS", "MEAN", "MAX", "CALL BYTES", "REPLY BYTES"}
var summaryRight = []bool{false, false, true, true, true, true, true, true}

func (s *summary) print(w io.Writer, d *decode.Decoder) {
	rows := make([]*operationCount, 0, len(s.rows))
	var total operationCount
	// Callbacks have many programs with one name. Rows that look alike keep the order of their keys.
	for _, k := range slices.SortedFunc(maps.Keys(s.rows), operationKey.compare) {
		r := s.rows[k]
		rows = append(rows, r)
		total.count += r.count
		total.errors += r.errors
		total.unread += r.unread
		total.callBytes += r.callBytes
		total.replyBytes += r.replyBytes
	}
	slices.SortStableFunc(rows, func(a, b *operationCount) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.program, b.program), cmp.Compare(a.operation, b.operation))
	})
	if len(rows) > 0 {
		cells := make([][]string, 0, len(rows))
		for _, r := range rows {
			mean, longest := "-", "-"
			if r.timed > 0 {
				mean = units.Duration(r.sum / time.Duration(r.timed))
				longest = units.Duration(r.longest)
			}
			operation := r.operation
			if operation == "" {
				operation = "?"
			}
			cells = append(cells, []string{
				r.program, operation, fmt.Sprint(r.count), failures(r), mean, longest,
				fmt.Sprint(r.callBytes), fmt.Sprint(r.replyBytes),
			})
		}
		_ = table.Print(w, summaryHeader, summaryRight, cells)
		fmt.Fprintln(w)
	}

	st := d.Stats()
	fmt.Fprintf(w, "transactions  %d: %d complete", total.count, s.states[transaction.Complete])
	for _, state := range []struct {
		of   transaction.State
		text string
	}{
		{transaction.Incomplete, "incomplete"}, {transaction.NoReply, "without reply"}, {transaction.NoCall, "without call"},
	} {
		if n := s.states[state.of]; n > 0 {
			fmt.Fprintf(w, ", %d %s", n, state.text)
		}
	}
	fmt.Fprintf(w, "; %d failed", total.errors)
	if total.unread > 0 {
		fmt.Fprintf(w, ", %d with an outcome that cannot be read", total.unread)
	}
	fmt.Fprintf(w, ", %d packets seen again\n", s.retransmits)

	fmt.Fprintf(w, "packets       %d, %d bytes", st.Packets, st.Bytes)
	if st.First.Seen() {
		fmt.Fprintf(w, ", in %s from %s", text.Within(st.First.Time, st.Last.Time),
			time.Unix(0, st.First.Time).UTC().Format("2006-01-02 15:04:05.000000 UTC"))
	}
	fmt.Fprintln(w)

	fmt.Fprintf(w, "connections   %d", st.Connections)
	sep := ": "
	for f, n := range s.fabrics {
		if n > 0 {
			fmt.Fprintf(w, "%s%d %s", sep, n, rdma.Fabric(f))
			sep = ", "
		}
	}
	fmt.Fprintln(w)

	if n := st.GoodICRC + st.BadICRC + st.NotChecked; n > 0 {
		fmt.Fprintf(w, "ICRC          %d good, %d wrong, %d not checked\n", st.GoodICRC, st.BadICRC, st.NotChecked)
	}
	if st.Joined > 0 {
		fmt.Fprintf(w, "offload       %s of %d packets\n", units.Plural(st.Joined, "datagram"), st.JoinedPackets)
	}
	a := d.Account()
	fmt.Fprintf(w, "account       %s\n", text.Account(nil, &a, 12))
	o := d.Orphans()
	for _, c := range []struct {
		n    uint64
		text string
	}{
		{o.OtherSends, "Sends without RPC"},
		{o.OrphanOps, "RDMA operations that match no captured chunk"},
		{o.Duplicates, "repeated replies"},
		{o.Dones, "RDMA_DONE messages"},
		{o.Evicted, "calls given up for lack of memory"},
		{st.Undecodable, "packets with damaged headers"},
		{st.NotSplit, "datagrams of several packets that could not be taken apart"},
	} {
		if c.n > 0 {
			fmt.Fprintf(w, "besides       %d %s\n", c.n, c.text)
		}
	}
	for f, n := range o.Malformed.Faults() {
		fmt.Fprintf(w, "besides       %s: %s\n", units.Plural(n, "malformed RPC-over-RDMA header"), f)
	}
}
