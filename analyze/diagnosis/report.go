package diagnosis

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/internal/units"
)

// Least shares of a clock that a cause has to be worth a word.
const (
	leastShare  = 0.05
	leastProved = 0.01 // if packets prove it
)

// Report is what has been found so far. It may be asked for again.
func (r *Recorder) Report() *Report {
	if r.points != nil {
		r.points.flush()
	}
	rep := r.copied().report()
	rep.Adapters = r.adapters.Trouble()
	return rep
}

// report ends the Recorder.
func (r *Recorder) report() *Report {
	r.lacks()
	r.flush()
	r.missing()
	r.away()
	rep := &Report{Schema: Schema, Calls: r.total, Wall: max(r.last-r.first, 0), Causes: []*Cause{}, Point: r.point()}
	rep.several = r.opt.File == ""
	rep.ends = slices.Clone(r.earlier)
	for _, k := range r.order {
		rep.ends = append(rep.ends, k.ends())
	}
	rep.first, rep.last, rep.count, rep.p99 = r.first, r.last, r.count, r.percentile99()
	for _, f := range r.joined() {
		if c := r.cause(f, rep); c != nil {
			rep.Causes = append(rep.Causes, c)
		}
	}
	slices.SortFunc(rep.Causes, (*Cause).order)
	rep.Causes = r.plain(rep.Causes)
	if rep.Healthy() {
		if c := r.idle(rep); c != nil {
			rep.Causes = slices.Insert(rep.Causes, 0, c)
		}
	}
	rep.Summary = r.summary(rep)
	return rep
}

// mostCauses is how many causes a report lists.
const mostCauses = 16

// plain leaves out what a more certain cause explains: a client that sends one call at a time is no reason for the time that a call takes.
func (r *Recorder) plain(list []*Cause) []*Cause {
	strong := 0.0
	for _, c := range list {
		if c.Certainty != Possible && c.Clock == Calls {
			strong += c.saves
		}
	}
	slow := strong*2 > float64(r.open)
	for _, c := range list {
		if c.Code == OneAtATime && slow {
			c.Certainty = Possible
		}
	}
	slices.SortFunc(list, (*Cause).order)
	return list[:min(len(list), mostCauses)]
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// cause makes a Cause of what was found; nil if it is too little to speak of.
func (r *Recorder) cause(f *finding, rep *Report) *Cause {
	switch {
	case r.unsure:
		f.certainty = Possible
	case r.mixed && f.certainty == Certain && f.code != CaptureGaps:
		f.certainty = Likely
	}
	c := &Cause{Code: f.code, Side: f.side, Where: f.place(), Time: f.time, Clock: f.clock, Certainty: f.certainty, Evidence: []Evidence{}, Next: []string{}}
	all := rep.Calls
	if f.clock == Wall {
		all = rep.Wall
	}
	if all > 0 {
		c.Share = min(float64(f.time)/float64(all), 1)
	}
	least := leastShare
	switch f.code {
	case LossRecovery, Outage, ReceiverNotReady:
		least = leastProved
	case CaptureGaps, Neighbour, Recall: // a loud neighbour has most calls itself; who waited for a recall may not be in the capture
		least = 0
	}
	if c.Share < least {
		return nil
	}
	c.saves = float64(f.time)
	if f.clock == Calls && rep.Calls > 0 {
		c.saves *= float64(r.open) / float64(rep.Calls)
	}
	if f.code == Outage { // all that waits for a connection waits together
		c.saves = min(float64(f.time), float64(rep.Wall))
	}
	c.Text = r.text(f, rep)
	for i := range f.worst {
		x := &f.worst[i].at
		c.Evidence = append(c.Evidence, Evidence{
			File: x.file(r.opt.File), Tap: x.place.tapName(), Frame: x.frame, Time: time.Unix(0, x.stamp).UTC().Format("2006-01-02T15:04:05.000000000Z"), ConnectionKey: x.connectionKey(), XID: x.xid, XIDHex: units.XID(x.xid),
		})
	}
	c.Next = append(c.Next, r.next(f)...)
	return c
}

// lacks has connections that have ended know how many packets the capture lacks of them.
func (r *Recorder) lacks() {
	at := make(map[int]*conn, len(r.order))
	for _, k := range r.order {
		at[k.id] = k
	}
	for i := range r.ended {
		e := &r.ended[i]
		if k := at[e.id]; k != nil {
			k.gaps, k.packets = max(k.gaps, e.gaps), max(k.packets, e.packets)
		}
	}
}

// missing finds packets that the capture lacks, though they were received.
func (r *Recorder) missing() {
	f := &finding{code: CaptureGaps, side: Capture, where: "capture", clock: Calls, certainty: Certain}
	packets := r.packets
	f.events = int(r.gaps)
	doubtful := r.doubtful
	joined := make(map[int]*conn)
	for _, k := range r.order {
		if k.both != nil {
			joined[k.id] = k
		}
	}
	for i := range r.ended {
		e := &r.ended[i]
		lacks, has := e.gaps, e.packets
		if k := joined[e.id]; k != nil { // what one point lacks, another one may have
			lacks, has = k.gaps, k.packets
		}
		f.events += int(lacks)
		packets += has
		doubtful = doubtful || e.doubtful && lacks > 0
	}
	if f.events < 3 || uint64(f.events)*1000 < packets {
		return
	}
	if doubtful {
		f.certainty = Possible
	}
	f.limit = int64(packets)
	r.found(f)
}

// awayLeast is how long a client has to be without a connection to speak of an outage.
const awayLeast = 200_000_000

// away finds times in which a client had no connection to its server, and tried to get one, or needed long for it.
func (r *Recorder) away() {
	for key := range r.sum {
		if key.code == Outage {
			return // calls show it
		}
	}
	slices.SortFunc(r.ended, func(a, b ended) int { return cmp.Compare(a.first, b.first) })
	type pair [2]netip.Addr
	last := make(map[pair]*ended)
	tries := make(map[pair][]worst)
	for i := range r.ended {
		e := &r.ended[i]
		p := pair(e.hosts)
		old := last[p]
		if e.sends == 0 {
			if e.rejected && old != nil && e.first >= old.last {
				tries[p] = append(tries[p], worst{at: call{conn: &conn{key: e.key}, frame: e.frame, stamp: e.first}})
			}
			continue
		}
		if old != nil && len(tries[p]) > 0 && e.first-old.last >= awayLeast {
			r.found(&finding{
				code: Outage, side: Server, on: []int{e.id}, clock: Wall, certainty: Certain, time: e.first - old.last, events: len(tries[p]),
				worst: tries[p][:min(len(tries[p]), shown)],
			})
		}
		tries[p] = nil
		if old == nil || e.last > old.last {
			last[p] = e
		}
	}
}

// idle finds that the mount waits for its application: nothing else was found, and mostly no call is under way.
func (r *Recorder) idle(rep *Report) *Cause {
	if rep.Wall <= 0 || r.open*2 >= rep.Wall || r.count < 8 {
		return nil
	}
	n := rep.Wall - r.open
	share := float64(n) / float64(rep.Wall)
	return &Cause{
		Code: ClientIdle, Side: Client, Where: "capture", Time: n, Clock: Wall, Share: share, Certainty: Possible, Evidence: []Evidence{}, Next: []string{},
		Text: fmt.Sprintf("The mount is idle %s of %s: no call is open, it waits for the application.", units.DurationText(n), units.DurationText(rep.Wall)),
	}
}

// Points at which packets are captured.
const (
	besideClient = "beside the client"
	besideServer = "beside the server"
	between      = "between client and server"
)

// point tells where packets were captured: an end whose acknowledgements come at once is near.
func (r *Recorder) point() string {
	var most *conn
	for _, k := range r.order {
		if k.both == nil && k.samples[0] >= 4 && k.samples[1] >= 4 && (most == nil || k.samples[0] > most.samples[0]) {
			most = k
		}
	}
	if most == nil {
		return ""
	}
	return most.point()
}

// point tells it of a connection.
func (k *conn) point() string {
	s, c := k.floor[0], k.floor[1]
	switch {
	case s < 0 || c < 0:
		return ""
	case c*4 < s:
		return besideClient
	case s*4 < c:
		return besideServer
	case s > 5_000 && c > 5_000 && k.steady():
		return between // acknowledgements of adapters in software take long as well, but not all as long
	}
	return ""
}

// percentile99 is the P99 of the latencies.
func (r *Recorder) percentile99() int64 {
	if n := len(r.p99); n > 0 {
		return nth(r.p99, n*99/100)
	}
	return 0
}
