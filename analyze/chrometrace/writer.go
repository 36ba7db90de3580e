// Package chrometrace writes transactions in the Trace Event Format, the JSON
// that Perfetto (ui.perfetto.dev) and chrome://tracing show.
//
// A connection is a process. Each of its slots is a thread: a call takes the
// lowest slot that is free while it is under way. Within the slice of a
// transaction lie those of its phases; the RDMA operations have threads of
// their own below that of the slot. Credits and calls in flight are counters,
// what troubled the connection are instants.
package chrometrace

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/heap"
)

// Schema is the value of otherData.schema.
const Schema = "rpcrdma.trace/1"

// Limits of what one file shows.
const (
	maxConnections = 1 << 15
	maxSlots       = 1 << 14 // of one connection and direction: as many as it may have open calls
	maxAllSlots    = 1 << 18 // of all connections
	maxTracks      = 63      // of RDMA operations that one transaction has under way at once
)

// Writer writes one file, event by event. It is not safe for concurrent use.
type Writer struct {
	// The time at zero. A JSON number has 53 bits in most programs: too few for nanoseconds since 1970.
	zero func() int64
	base int64

	w       *bufio.Writer
	b       []byte
	began   bool
	any     bool
	err     error
	ids     map[int]*process
	slots   int
	tracks  lanes
	scratch []byte
	args    args
	stats   Stats
}

// Stats counts what was written, and what the limits of the package left out.
type Stats struct {
	Transactions uint64
	Operations   uint64
	Events       uint64
	// LeftOut are transactions for which no slot was left, and events of
	// connections beyond the limit; HiddenOperations those for which the
	// transaction had no track left.
	LeftOut          uint64
	HiddenOperations uint64
	// Late are transactions that came after a later one, so that the counters
	// could not count them.
	Late uint64
}

// New makes a Writer. zero is called once, when the first event is written. It returns the time at zero in
// nanoseconds since 1970: the time of the first packet, since events may be older than the first transaction.
func New(w io.Writer, zero func() int64) *Writer {
	return &Writer{zero: zero, w: bufio.NewWriterSize(w, 1<<16), ids: make(map[int]*process), tracks: lanes{limit: maxTracks}}
}

// process is a connection.
type process struct {
	id      int
	named   uint8 // the client's side when the connection got its name, plus one
	dir     [2]direction
	current [2]int64 // last value of the counters of credits, requested and granted
	events  bool     // the thread of events has a name
}

// direction holds the calls of one side.
type direction struct {
	lanes   lanes
	threads []uint8 // of each slot: how many tracks below it have a name, plus one
	flight  []item  // heap of the ends of the calls in flight; lane is the number of credits granted
	latest  int64   // start of the latest call
}

// Stats returns the counts so far.
func (w *Writer) Stats() Stats { return w.stats }

// Add writes a transaction.
func (w *Writer) Add(v *rpc.View) error {
	tx := v.Tx
	p := w.process(tx.Connection.Resolve())
	if p == nil {
		w.stats.LeftOut++
		return w.err
	}
	start, end := span(tx)
	from, to := start, end
	for i := range tx.Operations {
		o := &tx.Operations[i]
		from, to = min(from, o.First.Time), max(to, o.Last.Time)
	}
	side := 0
	if tx.Backward {
		side = 1
	}
	d := &p.dir[side]
	d.lanes.limit = min(maxSlots, len(d.lanes.ends)+maxAllSlots-w.slots)
	before := len(d.lanes.ends)
	slot, ok := d.lanes.take(from, to)
	if !ok {
		w.stats.LeftOut++
		return w.err
	}
	w.slots += len(d.lanes.ends) - before
	w.stats.Transactions++
	tid := thread(side, slot, 0)
	w.slot(p, d, side, slot, 0)
	w.slice(v, p.id, tid, start, end)
	w.phases(tx, p.id, tid)
	w.operations(tx, p, d, side, slot)
	for i := range tx.Troubles {
		if x := &tx.Troubles[i]; x.Own {
			w.instant(p.id, tid, x.Kind, x.From, x.Value, x.Ref)
		}
	}
	w.count(p, d, side, tx, start, end)
	return w.err
}

// span is when a transaction began and ended: the time between is its total,
// if it has one. A call without a reply ends with its last packet.
func span(tx *transaction.Transaction) (start, end int64) {
	start = tx.First().Time
	if tx.Reply.Seen() {
		return start, max(start, tx.Reply.Last.Time)
	}
	end = max(start, tx.Call.Last.Time)
	for i := range tx.Operations {
		end = max(end, tx.Operations[i].Last.Time)
	}
	return start, end
}

// thread numbers the threads of a process: slots of calls of the client, slots
// of calls of the server, with their tracks.
func thread(side, slot, track int) int {
	return 1 + (side*maxSlots+slot)*(maxTracks+1) + track
}

func (w *Writer) process(c *rdma.Connection) *process {
	w.begin()
	p := w.ids[c.ID]
	if p == nil {
		if len(w.ids) >= maxConnections {
			return nil
		}
		p = &process{id: c.ID}
		p.current = [2]int64{-1, -1}
		w.ids[c.ID] = p
	}
	client, _ := transaction.ClientOf(c)
	if p.named != uint8(client)+1 {
		p.named = uint8(client) + 1
		a, b := c.Ends[client], c.Ends[client.Other()]
		w.meta(p.id, 0, "process_name", fmt.Sprintf("%s %s > %s %s", end(a), c.Fabric, end(b), "#"+strconv.Itoa(c.ID)))
		w.order(p.id, 0, "process_sort_index", c.ID)
	}
	return p
}

func end(e rdma.End) string {
	s := link.AddrString(e.Addr)
	switch {
	case e.QPN != 0:
		return fmt.Sprintf("%s QP 0x%x", s, e.QPN)
	case e.Port != 0:
		return fmt.Sprintf("%s port %d", s, e.Port)
	}
	return s
}

// slot names the thread of a slot, or of a track below it, when it is used
// first.
func (w *Writer) slot(p *process, d *direction, side, slot, track int) {
	for len(d.threads) <= slot {
		d.threads = append(d.threads, 0)
	}
	for int(d.threads[slot]) <= track {
		n := int(d.threads[slot])
		name := "slot "
		if side == 1 {
			name = "callback slot "
		}
		name += strconv.Itoa(slot)
		if n > 0 {
			name += " rdma " + strconv.Itoa(n)
		}
		tid := thread(side, slot, n)
		w.meta(p.id, tid, "thread_name", name)
		w.order(p.id, tid, "thread_sort_index", tid)
		d.threads[slot]++
	}
}

// slice writes the slice of a transaction.
func (w *Writer) slice(v *rpc.View, pid, tid int, start, end int64) {
	tx := v.Tx
	w.scratch = text.Operations(w.scratch[:0], v)
	if len(w.scratch) == 0 {
		w.scratch = append(w.scratch, "unknown"...)
	}
	b := w.event('X', pid, tid, start)
	b = dur(b, start, end)
	b = append(b, `,"name":`...)
	b = ndjson.QuoteBytes(b, w.scratch)
	w.scratch = text.Program(w.scratch[:0], v)
	b = append(b, `,"cat":`...)
	b = ndjson.QuoteBytes(b, w.scratch)
	b = append(b, `,"args":{"xid":"0x`...)
	b = hex8(b, tx.XID)
	b = append(b, '"')
	b = w.args.append(b, v)
	for i, n := range tx.Notes {
		b = append(b, `,"note`...)
		b = strconv.AppendInt(b, int64(i+1), 10)
		b = append(b, `":`...)
		b = ndjson.Quote(b, n.String())
	}
	w.put(append(b, `}}`...))
}

// phases writes those phases of a transaction that took time, one after the
// other within its slice.
func (w *Writer) phases(tx *transaction.Transaction, pid, tid int) {
	p, ok := tx.Phases()
	if !ok || !p.Divided() {
		return
	}
	at := tx.Call.First.Time
	for ph := range transaction.Parts() {
		d := p.Of(ph)
		if d == 0 {
			continue
		}
		b := w.event('X', pid, tid, at)
		b = dur(b, at, at+int64(d))
		b = append(b, `,"name":"`...)
		b = append(b, ph.String()...)
		b = append(b, `","cat":"phase"`...)
		switch ph {
		case transaction.PhasePull:
			b = append(b, `,"args":{"rdma_reads":`...)
			b = strconv.AppendInt(b, int64(tx.Reads), 10)
			b = num(b, "bytes", tx.ReadBytes)
			b = num(b, "pull_wait_ns", uint64(p.PullWait))
			b = append(b, '}')
		case transaction.PhasePush:
			b = append(b, `,"args":{"rdma_writes":`...)
			b = strconv.AppendInt(b, int64(tx.Writes), 10)
			b = num(b, "bytes", tx.WriteBytes)
			b = append(b, '}')
		}
		w.put(append(b, '}'))
		at += int64(d)
	}
}

// operations writes the RDMA Reads and Writes of a transaction on tracks below
// its slot.
func (w *Writer) operations(tx *transaction.Transaction, p *process, d *direction, side, slot int) {
	w.tracks.reset()
	for i := range tx.Operations {
		o := &tx.Operations[i]
		track, ok := w.tracks.take(o.First.Time, o.Last.Time)
		if !ok {
			w.stats.HiddenOperations++
			continue
		}
		w.stats.Operations++
		w.slot(p, d, side, slot, track+1)
		b := w.event('X', p.id, thread(side, slot, track+1), o.First.Time)
		b = dur(b, o.First.Time, max(o.First.Time, o.Last.Time))
		if o.Kind == rdma.Read {
			b = append(b, `,"name":"RDMA Read"`...)
		} else {
			b = append(b, `,"name":"RDMA Write"`...)
		}
		b = append(b, `,"cat":"rdma","args":{"xid":"0x`...)
		b = hex8(b, tx.XID)
		b = append(b, `","chunk":"`...)
		b = append(b, o.Chunk.String()...)
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(o.Index), 10)
		b = append(b, `]","handle":"0x`...)
		b = hex8(b, o.Handle)
		b = append(b, `","offset":"0x`...)
		b = hex8(b, uint32(o.Offset>>32))
		b = hex8(b, uint32(o.Offset))
		b = append(b, '"')
		b = num(b, "length", uint64(o.Length))
		b = num(b, "bytes", uint64(o.Bytes))
		b = num(b, "first_frame", o.First.Number)
		b = num(b, "last_frame", o.Last.Number)
		if o.Again > 0 {
			b = num(b, "packets_again", uint64(o.Again))
		}
		w.put(append(b, `}}`...))
	}
	w.stats.HiddenOperations += uint64(tx.OperationsLost)
}

// count writes the counters. Transactions come in the order of their calls, so
// all that ended before this one's start is known; one that comes late is left
// out.
func (w *Writer) count(p *process, d *direction, side int, tx *transaction.Transaction, start, end int64) {
	if start < d.latest {
		w.stats.Late++
		return
	}
	w.ended(p, d, side, start)
	d.latest = start
	granted := -1
	if tx.Reply.Transport {
		granted = int(tx.Reply.Header.Credits)
	}
	d.flight = heap.Push(d.flight, item{end, granted}, item.before)
	w.inFlight(p, d, side, start)
	if tx.Call.Transport {
		w.credits(p, side, 0, start, int64(tx.Call.Header.Credits))
	}
}

// ended counts the calls that had ended at a time.
func (w *Writer) ended(p *process, d *direction, side int, until int64) {
	for len(d.flight) > 0 && d.flight[0].key <= until {
		var x item
		x, d.flight = heap.Pop(d.flight, item.before)
		// Several ends at one moment are one step.
		if len(d.flight) == 0 || d.flight[0].key > x.key {
			w.inFlight(p, d, side, x.key)
		}
		if x.lane >= 0 {
			w.credits(p, side, 1, x.key, int64(x.lane))
		}
	}
}

func (w *Writer) inFlight(p *process, d *direction, side int, at int64) {
	b := w.event('C', p.id, 0, at)
	if side == 0 {
		b = append(b, `,"name":"calls in flight","args":{"calls":`...)
	} else {
		b = append(b, `,"name":"callbacks in flight","args":{"calls":`...)
	}
	b = strconv.AppendInt(b, int64(len(d.flight)), 10)
	w.put(append(b, `}}`...))
}

// credits writes the credits requested (which 0) or granted (1) by calls of
// the client, when they change.
func (w *Writer) credits(p *process, side, which int, at, n int64) {
	if side != 0 || p.current[which] == n {
		return
	}
	p.current[which] = n
	b := w.event('C', p.id, 0, at)
	b = append(b, [2]string{`,"name":"credits requested"`, `,"name":"credits granted"`}[which]...)
	b = append(b, `,"args":{"credits":`...)
	b = strconv.AppendInt(b, n, 10)
	w.put(append(b, `}}`...))
}

// Close writes what is left. It does not close what is below.
func (w *Writer) Close() error {
	w.begin()
	for _, id := range slices.Sorted(maps.Keys(w.ids)) { // the same file each time
		p := w.ids[id]
		for side := range p.dir {
			w.ended(p, &p.dir[side], side, 1<<63-1)
		}
	}
	w.write([]byte("\n]}\n"))
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}
