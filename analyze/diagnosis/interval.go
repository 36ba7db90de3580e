package diagnosis

import (
	"maps"
	"slices"
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// interval has the calls of the current interval and of the one before.
type interval struct {
	calls, before []call
	beyond, left  uint64 // calls of the current interval, and of the one before, that were not kept
}

// intervalCalls is the number of calls kept of an interval: the first ones.
const intervalCalls = 1 << 12

// add keeps a call.
func (i *interval) add(x *call) {
	if len(i.calls) == intervalCalls {
		i.beyond++
		return
	}
	i.calls = append(i.calls, *x)
}

// Limited returns Options for a Recorder that uses at most memory bytes.
func Limited(memory int) Options {
	const calls = int(unsafe.Sizeof(call{}))
	const conns = int(4*unsafe.Sizeof([2]lane{}) + 2*unsafe.Sizeof(conn{}))
	// Reports copy the calls; intervals keep a quarter of them each.
	return Options{Calls: max(memory/2/(3*calls), 256), Connections: max(memory/2/conns, 16)}
}

// Roll ends an interval. It needs Options.Live and runs on the goroutine that delivers calls and packets.
func (r *Recorder) Roll() {
	i := &r.interval
	i.calls, i.before = i.before[:0], i.calls
	i.beyond, i.left = 0, i.beyond
	r.Forget(max(r.opt.Connections/2, 1))
	if r.watch != nil {
		r.watch.roll()
	}
}

// Interval reports why the calls that ended in the latest complete interval took long. It returns nil if there were none. left is the
// number of calls of the interval that were not kept.
func (r *Recorder) Interval() (rep *Report, left uint64) {
	i := &r.interval
	if len(i.before) == 0 {
		return nil, 0
	}
	c := &Recorder{opt: r.opt, names: r.names, kinds: r.kinds, sum: make(map[causeKey]*finding), calls: slices.Clone(i.before), few: maps.Clone(r.few)}
	c.traffic = &traffic{stops: r.pausesSeen()}
	if r.watch != nil {
		c.traffic.lanes = r.watch.latest
	}
	r.settle()
	copies := make(map[*conn]*conn)
	for n := range c.calls {
		x := &c.calls[n]
		k := copies[x.conn]
		if k == nil {
			k = new(conn)
			*k = *x.conn
			k.calls, k.queued, k.paused, k.place = nil, false, false, len(c.order)
			k.unsteady, k.known = x.conn.samples[0] > 0 && !x.conn.steady(), x.conn.floor
			copies[x.conn] = k
			c.order = append(c.order, k)
		}
		x.conn = k
		c.note(x)
	}
	return c.report(), i.left
}

// settle measures the round trips of connections from all calls that have not been evaluated yet.
func (r *Recorder) settle() {
	for _, k := range r.order {
		k.calls = k.calls[:0]
	}
	for i := range r.calls {
		x := &r.calls[i]
		x.conn.calls = append(x.conn.calls, x)
	}
	for _, k := range r.order {
		if len(k.calls) > 0 {
			k.measure()
		}
		k.calls = nil
	}
}

// Forget evaluates the calls of connections that have ended, and forgets these, if there are at least least of them.
func (r *Recorder) Forget(least int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ended) < least {
		return
	}
	r.flush()
	gone := make(map[int]bool, len(r.ended))
	for i := range r.ended {
		e := &r.ended[i]
		gone[e.id] = true
		r.gaps += e.gaps
		r.packets += e.packets
		r.doubtful = r.doubtful || e.doubtful && e.gaps > 0
	}
	r.ended = r.ended[:0]
	maps.DeleteFunc(r.conns, func(id int, k *conn) bool {
		if gone[id] && len(r.earlier) < maxConns {
			r.earlier = append(r.earlier, k.ends())
		}
		return gone[id]
	})
	slices.Sort(r.earlier)
	r.earlier = slices.Compact(r.earlier)
	r.order = slices.DeleteFunc(r.order, func(k *conn) bool { return gone[k.id] })
	for i, k := range r.order {
		k.place = i
	}
	if r.watch != nil {
		r.watch.forget(gone)
	}
}

// forget forgets connections by number.
func (w *watcher) forget(gone map[int]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.known = nil, nil
	for _, m := range [...]map[*rdma.Connection]*[2]lane{w.lanes, w.older} {
		maps.DeleteFunc(m, func(c *rdma.Connection, _ *[2]lane) bool { return gone[c.ID] })
	}
}

// roll begins an interval. It adds the traffic of the previous one to the older traffic.
func (w *watcher) roll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.known = nil, nil
	if w.older == nil {
		w.older, w.latest = make(map[*rdma.Connection]*[2]lane), make(map[int]*[2]lane)
	}
	for _, l := range w.latest {
		*l = [2]lane{}
		w.spare = append(w.spare, l)
	}
	clear(w.latest)
	for c, l := range w.lanes {
		if old := w.older[c]; old != nil {
			old[0].add(&l[0])
			old[1].add(&l[1])
		} else {
			w.older[c] = copyOf(l)
		}
		w.latest[c.ID] = l
	}
	clear(w.lanes)
}

// lane makes room for the traffic of a connection. It returns nil if there is none.
func (w *watcher) lane(c *rdma.Connection) *[2]lane {
	old := w.older[c]
	if len(w.lanes) >= w.most || old == nil && len(w.older) >= w.most {
		return nil
	}
	l := new([2]lane)
	if n := len(w.spare); n > 0 {
		l, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	if old != nil {
		for i := range l {
			l[i].refusedAt, l[i].refusedPSN = old[i].refusedAt, old[i].refusedPSN
		}
	}
	w.lanes[c] = l
	return l
}

// add adds later traffic.
func (l *lane) add(o *lane) {
	if l.cnps > 0 {
		l.sinceCNP += o.bytes
	} else {
		l.sinceCNP, l.cnpFirst = o.sinceCNP, o.cnpFirst
	}
	if l.cnps += o.cnps; o.cnps > 0 {
		l.cnpLast = o.cnpLast
	}
	if !l.first.Seen() {
		l.first = o.first
	}
	if o.last.Seen() {
		l.last = o.last
	}
	for i := range l.paces {
		l.paces[i].add(&o.paces[i])
		l.chunks[i].add(&o.chunks[i])
	}
	l.paced.add(&o.paced)
	l.bytes += o.bytes
	l.marked += o.marked
	l.zeroWindow += o.zeroWindow
	l.rnrs += o.rnrs
	l.late += o.late
	l.againFirst = earlier(l.againFirst, o.againFirst)
	l.between += o.between
	l.seen += o.seen
	l.reread += o.reread
	if n := min(len(o.refused), maxRefused-len(l.refused)); n > 0 {
		l.refused = slices.Concat(l.refused, o.refused[:n]) // copies of the lane share the slice
	}
	l.refusedAt, l.refusedPSN = o.refusedAt, o.refusedPSN
}

func (p *pace) add(o *pace) {
	p.bytes += o.bytes
	p.time += o.time
}
