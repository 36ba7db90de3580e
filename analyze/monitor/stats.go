package monitor

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Point is what one operation did in one interval.
type Point struct {
	Count    uint64
	Bytes    uint64 // of RPC messages
	P50, P99 int64  // ns; 0 if there were none
}

// stats sums up the transactions that pass a filter.
type stats struct {
	since   int64 // ns since 1970: the first packet that counts
	rec     *latency.Recorder
	ops     []*operation
	slots   ring
	files   usages
	clients usages
	heat    Heat
	all     latency.Sample
	cur     sums
	last    sums
	phases  Times
	name    []byte

	groups []*latency.Group // as of the last request
	sum    *latency.Group   // their sum
	stale  bool
}

// sums are counts of one interval.
type sums struct {
	count, errors, bytes, data uint64
	time                       int64 // of all latencies
}

// Times are sums by transaction.Phase. The path, as far as it is known, is apart from the phases, at latency.PathPart.
type Times [latency.PathPart + 1]int64

// add adds the times of a transaction.
func (t *Times) add(tx *transaction.Transaction, p *transaction.Phases) {
	for ph := range transaction.Parts() {
		t[ph] += max(int64(p.Of(ph)), 0) // unknown: not Divided
	}
	if in, ok := tx.SurePath(p); ok {
		t[transaction.PhasePull] -= int64(in.Pull)
		t[transaction.PhaseServer] -= int64(in.Server)
		t[transaction.PhasePush] -= int64(in.Push)
		t[latency.PathPart] += int64(in.Pull + in.Server + in.Push)
	}
}

// operation is one group of the recorder.
type operation struct {
	sums
	name   string
	sample latency.Sample
	phases Times
	points []Point // a ring parallel to that of stats
	// The latest complete interval.
	last     sums
	p50, p99 int64
	most     int64
	lastPart Times
}

func newStats(since int64, history int) *stats {
	return &stats{
		since: since, stale: true,
		rec:   latency.New(latency.Options{Unordered: true}),
		slots: ring{slots: make([]Slot, history)},
	}
}

// add counts an ended transaction.
func (s *stats) add(v *rpc.View, client string, now int64) {
	tx := v.Tx
	s.stale = true
	i := s.rec.Add(v)
	failed := v.Failed()
	x := s.operation(i, v)
	bytes := tx.Call.Bytes + tx.Reply.Bytes
	data := tx.ReadBytes + tx.WriteBytes
	for _, n := range [...]*sums{&x.sums, &s.cur} {
		n.count++
		n.bytes += bytes
		n.data += data
		if failed {
			n.errors++
		}
	}
	total := int64(-1)
	if p, ok := tx.Phases(); ok && p.Total >= 0 {
		total = int64(p.Total)
		x.sample.Add(total)
		s.all.Add(total)
		x.time += total
		s.cur.time += total
		s.heat[band(total)]++
		x.phases.add(tx, &p)
		s.phases.add(tx, &p)
	}
	s.name = clip(latency.AppendFile(s.name[:0], v))
	if string(s.name) != "-" {
		s.files.add(s.name, len(s.name), nil, failed, bytes, data, total, now)
	}
	s.name = append(s.name[:0], client...)
	var tunnel *rdma.Tunnel
	if c := tx.Connection; c.Tenant != 0 {
		tunnel = c.Tunnel
		s.name = binary.BigEndian.AppendUint64(s.name, c.Tenant)
	}
	s.clients.add(s.name, len(client), tunnel, failed, bytes, data, total, now)
}

// operation finds the counters of a group of the recorder.
func (s *stats) operation(i int, v *rpc.View) *operation {
	if i < len(s.ops) {
		return s.ops[i]
	}
	if len(s.ops) > maxOperations {
		return s.ops[maxOperations]
	}
	x := &operation{points: make([]Point, len(s.slots.slots))}
	if len(s.ops) == maxOperations {
		x.name = "other"
	} else {
		x.name = operationName(v)
	}
	s.ops = append(s.ops, x)
	return x
}

// operationName is the name of an operation as in a report: "nfs3 READ".
func operationName(v *rpc.View) string {
	name := text.Operation(v)
	if name == "" {
		name = "?"
	}
	return string(append(append(text.Program(nil, v), ' '), name...))
}

// clip limits the length of a name, which may be as long as a message, to its beginning and a checksum.
func clip(b []byte) []byte {
	if len(b) <= maxName {
		return b
	}
	sum := crc32.ChecksumIEEE(b)
	return append(b[:maxName-9], '~', hex[sum>>28], hex[sum>>24&15], hex[sum>>20&15], hex[sum>>16&15],
		hex[sum>>12&15], hex[sum>>8&15], hex[sum>>4&15], hex[sum&15])
}

const hex = "0123456789abcdef"

// close ends an interval that began at start. idle means that neither it nor the previous one had any
// transactions.
func (s *stats) close(start int64, open, stuck int, idle bool) {
	at := s.slots.push()
	if idle {
		*at = Slot{Start: start, Open: open, Stuck: stuck}
		for _, x := range s.ops {
			x.points[s.slots.last()] = Point{}
		}
		return
	}
	d := s.all.Distribution()
	*at = Slot{
		Start: start, Count: s.cur.count, Errors: s.cur.errors, Bytes: s.cur.bytes, Data: s.cur.data,
		Time: s.cur.time, P50: d.P50, P99: d.P99, Max: d.Max,
		Open: open, Stuck: stuck, Parts: s.phases, Heat: s.heat,
	}
	for _, x := range s.ops {
		var p Point
		p.Count, p.Bytes = x.count, x.bytes
		x.p50, x.p99, x.most = 0, 0, 0
		if x.sample.Count() > 0 {
			d := x.sample.Distribution()
			p.P50, p.P99 = d.P50, d.P99
			x.p50, x.p99, x.most = d.P50, d.P99, d.Max
			x.sample.Reset()
		}
		x.points[s.slots.last()] = p
		x.last, x.sums = x.sums, sums{}
		x.lastPart, x.phases = x.phases, Times{}
	}
	s.last, s.cur = s.cur, sums{}
	s.phases = Times{}
	s.heat = Heat{}
	s.all.Reset()
	s.files.roll()
	s.clients.roll()
}

// restart drops the counts over time, but not the totals.
func (s *stats) restart() {
	s.slots = ring{slots: make([]Slot, len(s.slots.slots))}
	for _, x := range s.ops {
		clear(x.points)
		x.last, x.sums = sums{}, sums{}
		x.lastPart, x.phases = Times{}, Times{}
		x.p50, x.p99, x.most = 0, 0, 0
		x.sample.Reset()
	}
	s.cur, s.last, s.heat = sums{}, sums{}, Heat{}
	s.phases = Times{}
	s.all.Reset()
	for range 2 { // first the counts, then zeros
		s.files.roll()
		s.clients.roll()
	}
}

// totals are the groups of the recorder.
func (s *stats) totals() []*latency.Group {
	if s.stale {
		s.groups, s.stale = s.rec.Groups(), false
		s.sum = latency.Merge(s.groups...)
	}
	return s.groups
}
