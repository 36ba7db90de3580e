package diagnosis

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// CallsKind is the kind of the section of the calls in a saved state, CallsVersion the version of its encoding. The calls of several states
// can be joined as those of several files are.
const (
	CallsKind    = "diagnosis-calls"
	CallsVersion = 2
)

// savedCalls is how many calls a saved state has: beyond that it has only the Report of them.
const savedCalls = 2 * batchCalls

// traffic is what was seen besides calls.
type traffic struct {
	lanes map[int]*[2]lane // by the number of the connection
	stops []still
}

// seenTraffic is what was seen so far.
func (r *Recorder) seenTraffic() traffic {
	switch {
	case r.traffic != nil:
		return *r.traffic
	case r.watch == nil:
		return traffic{}
	}
	return traffic{r.watch.copied(), r.pausesSeen()}
}

// Calls encodes what a later diagnosis needs to join it with what other capture points have seen. ok is false if that is too much. It is called
// after Report.
func (r *Recorder) Calls() (s state.Section, ok bool) {
	if r.count > 0 || r.beyond > 0 || r.gaps > 0 || r.events {
		return s, false
	}
	list := []*point{{rec: r, place: place{file: r.opt.File}}}
	if r.points != nil && len(r.points.list) > 0 {
		list = r.points.list
	}
	n := 0
	for _, x := range list {
		x.rec.lacks()
		n += len(x.rec.calls)
	}
	if n > savedCalls {
		return s, false
	}
	c := state.NewWriter(nil)
	n = len(list)
	c.Count(&n, 1, mostPoints)
	for _, x := range list {
		x.code(c)
	}
	return state.Section{Kind: CallsKind, Version: CallsVersion, Body: c.Bytes()}, true
}

// readCalls reads the capture points of a unit; there are none if it has no calls.
func readCalls(u *state.Unit) ([]*point, error) {
	s := u.Section(CallsKind)
	if s == nil || s.Version != CallsVersion {
		return nil, nil
	}
	c := state.NewReader(s.Body)
	n := 0
	c.Count(&n, 1, mostPoints)
	list := make([]*point, n)
	for i := range list {
		list[i] = &point{rec: New(Options{kept: true})}
		list[i].code(c)
	}
	if err := c.End(); err != nil {
		return nil, fmt.Errorf("%w: calls: %w", state.ErrDamaged, err)
	}
	return list, nil
}

// longest is the longest text that is read.
const longest = 4096

// code codes a point.
func (p *point) code(c *state.Coder) {
	r := p.rec
	c.Text(&p.place.file, longest)
	c.Text(&p.place.tap, longest)
	state.Number(c, &p.lane[0])
	state.Number(c, &p.lane[1])
	state.Number(c, &p.tap)
	state.List(c, &r.names.list, maxNames, func(s *string) { c.Text(s, longest) })
	var t traffic
	if !c.Reading() {
		t = r.seenTraffic()
	} else {
		t.lanes = make(map[int]*[2]lane)
		r.traffic = &t
	}
	state.List(c, &t.stops, maxPauses, func(s *still) { s.code(c) })
	if c.Reading() {
		r.traffic.stops = t.stops
	}
	state.List(c, &r.order, maxConns, func(k **conn) {
		if *k == nil {
			*k = &conn{ways: [2]int64{-1, -1}, floor: [2]int64{-1, -1}, near: [2]int64{-1, -1}}
		}
		l := t.lanes[(*k).id]
		(*k).code(c, &l, len(r.names.list))
		if c.Reading() && l != nil {
			t.lanes[(*k).id] = l
		}
	})
	for i, k := range r.order {
		k.place = i
		r.conns[k.id] = k
	}
	state.List(c, &r.calls, savedCalls, func(x *call) { x.code(c, r) })
	state.List(c, &r.ended, maxConns, func(e *ended) { e.code(c) })
	if !c.Reading() {
		return
	}
	r.names.at = make(map[string]uint16, len(r.names.list))
	for i, n := range r.names.list {
		r.names.at[n] = uint16(i)
	}
}

func (s *still) code(c *state.Coder) {
	state.Signed(c, &s.from)
	near(c, &s.to, s.from)
}

// near codes a time that is near another one, or 0.
func near(c *state.Coder, t *int64, other int64) {
	n := *t - other
	switch {
	case *t == 0:
		n = 0
	case n >= 0:
		n++
	}
	state.Signed(c, &n)
	switch {
	case !c.Reading():
	case n == 0:
		*t = 0
	case n > 0:
		*t = other + n - 1
	default:
		*t = other + n
	}
}

// below codes a number less than n.
func below[T ~int | ~uint16](c *state.Coder, v *T, n int) {
	if state.Number(c, v); int(*v) >= n && c.Reading() {
		c.Fail("%d is not one of %d", *v, n)
		*v = 0
	}
}

func (k *conn) code(c *state.Coder, l **[2]lane, names int) {
	state.Number(c, &k.id)
	c.Text(&k.key, longest)
	state.Enum(c, &k.fabric, rdma.Fabrics)
	state.Number(c, &k.timeout)
	state.Number(c, &k.depth)
	shallow := k.shallow == Client
	if c.Flag(&shallow); c.Reading() {
		k.shallow = Server
		if shallow {
			k.shallow = Client
		}
	}
	state.Enum(c, &k.client, 2)
	state.Number(c, &k.gaps)
	state.Number(c, &k.packets)
	for i := range k.hosts {
		c.Address(&k.hosts[i].addr)
		below(c, &k.hosts[i].name, max(names, 1))
	}
	seen := *l != nil
	if c.Flag(&seen); !seen {
		return
	}
	if *l == nil {
		*l = new([2]lane)
	}
	(*l)[0].code(c)
	(*l)[1].code(c)
}

func (l *lane) code(c *state.Coder) {
	state.Number(c, &l.bytes)
	for _, t := range [...]*int64{&l.first.Time, &l.last.Time, &l.cnpFirst, &l.cnpLast, &l.againFirst} {
		state.Signed(c, t)
	}
	state.Number(c, &l.first.Number)
	state.Number(c, &l.last.Number)
	for _, list := range [...]*[paceClasses]pace{&l.paces, &l.chunks} {
		for i := range list {
			if state.Number(c, &list[i].bytes); list[i].bytes > 0 {
				state.Number(c, &list[i].time)
			}
		}
	}
	state.Number(c, &l.cnps)
	state.Number(c, &l.paced.bytes)
	state.Number(c, &l.paced.time)
	for _, n := range [...]*uint64{&l.sinceCNP, &l.marked, &l.zeroWindow, &l.rnrs, &l.late, &l.seen, &l.reread} {
		state.Number(c, n)
	}
	state.List(c, &l.refused, maxRefused, func(s *still) { s.code(c) })
}

func (x *call) code(c *state.Coder, r *Recorder) {
	at := 0
	if x.conn != nil {
		at = x.conn.place
	}
	below(c, &at, len(r.order))
	if c.Err() != nil {
		return
	}
	if c.Reading() {
		x.conn = r.order[at]
	}
	for _, n := range [...]*uint16{&x.client, &x.server, &x.op} {
		below(c, n, len(r.names.list))
	}
	state.Signed(c, &x.start)
	for _, t := range [...]*int64{&x.stamp, &x.sent, &x.end, &x.callEnd, &x.act, &x.firstRead, &x.lastRead, &x.answer, &x.done} {
		near(c, t, x.start)
	}
	for _, n := range [...]*int64{&x.wayS, &x.wayC, &x.pulled, &x.credits, &x.slots} {
		state.Signed(c, n)
	}
	x.nearS, x.nearC = x.wayS, x.wayC
	state.Number(c, &x.from)
	state.Number(c, &x.frame)
	state.Number(c, &x.thing)
	for _, n := range [...]*uint32{&x.xid, &x.bytes, &x.slotLimit, &x.granted, &x.asked, &x.rawGrant} {
		state.Number(c, n)
	}
	state.Number(c, &x.reads)
	for i := range x.lost {
		state.Signed(c, &x.lost[i])
	}
	state.Enum(c, &x.status, int(unanswered)+1)
	state.Enum(c, &x.kind, int(askingFew)+1)
	for _, is := range [...]*bool{&x.pushed, &x.resent, &x.backward} {
		c.Flag(is)
	}
}

func (e *ended) code(c *state.Coder) {
	state.Number(c, &e.id)
	c.Address(&e.hosts[0])
	c.Address(&e.hosts[1])
	state.Signed(c, &e.first)
	near(c, &e.last, e.first)
	c.Flag(&e.rejected)
	c.Flag(&e.doubtful)
	c.Text(&e.key, longest)
	for _, n := range [...]*uint64{&e.sends, &e.gaps, &e.packets, &e.frame} {
		state.Number(c, n)
	}
}

// errCalls says that a unit has no calls to be joined.
var errCalls = errors.New("no calls")

// joinUnits looks for causes in the calls of all units together, as if their captures had been given. It returns nil if a unit has
// only a Report.
func joinUnits(src state.Source) (*Report, error) {
	var list []*point
	units := 0
	err := src.Each(func(u *state.Unit) error {
		x, err := read(u)
		if err != nil || x == nil {
			return err
		}
		got, err := readCalls(u)
		if err != nil {
			return err
		}
		for _, p := range got {
			if p.place.file == "" {
				p.place.tap = x.input()
			}
		}
		units++
		if list = append(list, got...); len(got) == 0 || len(list) > mostPoints {
			return errCalls
		}
		return nil
	})
	switch {
	case errors.Is(err, errCalls) || units < 2 && err == nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return whole(list).report(), nil
}

// whole makes the Recorder of all points together.
func whole(list []*point) *Recorder {
	r := New(Options{})
	r.final, r.points, r.traffic = true, &points{list: list, ended: true}, &traffic{lanes: make(map[int]*[2]lane)}
	for _, p := range list {
		r.traffic.stops = append(r.traffic.stops, p.rec.seenTraffic().stops...)
	}
	slices.SortFunc(r.traffic.stops, func(a, b still) int { return cmp.Compare(a.from, b.from) })
	type id struct {
		ends string
		nth  int
	}
	number := make(map[id]int)
	type first struct {
		id
		at int64
	}
	var firsts []first
	ids := make([]map[int]id, len(list)) // of the connections of each point
	for i, p := range list {
		ids[i] = make(map[int]id)
		count := make(map[string]int)
		note := func(conn int, ends string, at int64) {
			if _, ok := ids[i][conn]; ok {
				return
			}
			k := id{ends, count[ends]}
			count[ends]++
			ids[i][conn] = k
			firsts = append(firsts, first{k, at})
		}
		slices.SortStableFunc(p.rec.ended, func(a, b ended) int { return cmp.Compare(a.first, b.first) })
		for j := range p.rec.ended {
			e := &p.rec.ended[j]
			note(e.id, ends(e.key), e.first)
		}
		for _, k := range p.rec.order {
			note(k.id, k.ends(), 0)
		}
	}
	slices.SortFunc(firsts, func(a, b first) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.ends, b.ends), cmp.Compare(a.nth, b.nth))
	})
	for _, f := range firsts {
		if _, ok := number[f.id]; !ok {
			number[f.id] = len(number) + 1
		}
	}
	has := make(map[same]bool)
	over := make(map[int]int) // of connections that have ended: where they are
	for i, p := range list {
		count := make(map[same]int)
		var calls []same
		for j := range p.rec.calls {
			x := p.rec.calls[j] // copied
			k := r.wholeConn(x.conn, number[ids[i][x.conn.id]])
			key := same{conn: k.id, xid: x.xid, nth: 2 * count[same{conn: k.id, xid: x.xid}]}
			count[same{conn: k.id, xid: x.xid}]++
			calls = append(calls, key)
			if has[key] {
				continue
			}
			if x.from = number[ids[i][x.from]]; x.from == 0 && x.sent == x.start {
				x.from = k.id
			}
			x.conn = k
			r.names.adopt(&x, &p.rec.names)
			r.note(&x)
			r.calls = append(r.calls, x)
		}
		for _, key := range calls {
			has[key] = true
		}
		for _, k := range p.rec.order {
			n := number[ids[i][k.id]]
			if l := p.rec.traffic.lanes[k.id]; l != nil && r.conns[n] != nil {
				r.addLanes(r.conns[n], k, l)
			}
		}
		for _, e := range p.rec.ended {
			e.id = number[ids[i][e.id]]
			if at, ok := over[e.id]; ok {
				o := &r.ended[at]
				o.doubtful = o.doubtful || e.doubtful
				o.gaps, o.packets, o.sends = min(o.gaps, e.gaps), max(o.packets, e.packets), max(o.sends, e.sends)
				continue
			}
			over[e.id] = len(r.ended)
			r.ended = append(r.ended, e)
		}
	}
	r.order = slices.SortedFunc(maps.Values(r.conns), func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	for i, k := range r.order {
		k.place = i
	}
	return r
}

// wholeConn is the connection with a number, which a point has seen as k.
func (r *Recorder) wholeConn(k *conn, n int) *conn {
	w := r.conns[n]
	if w == nil {
		w = new(conn)
		*w = *k
		w.id, w.calls = n, nil
		for i := range w.hosts {
			if w.hosts[i].addr.IsValid() {
				w.hosts[i].name = r.names.of([]byte(w.hosts[i].addr.String()))
			}
		}
		r.conns[n] = w
	}
	w.timeout, w.depth = max(w.timeout, k.timeout), max(w.depth, k.depth)
	return w
}

// addLanes adds what a point has seen of a connection that no other one has seen at that time.
func (r *Recorder) addLanes(w, k *conn, l *[2]lane) {
	if w.client != k.client {
		l = &[2]lane{l[1], l[0]}
	}
	old := r.traffic.lanes[w.id]
	switch {
	case old == nil:
		r.traffic.lanes[w.id] = copyOf(l)
	case l[0].first.Time > old[0].last.Time && l[1].first.Time > old[1].last.Time:
		old[0].add(&l[0])
		old[1].add(&l[1])
	}
}
