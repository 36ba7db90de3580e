package diagnosis

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// readDepth finds servers that may have one RDMA Read under way at a time: the next one goes out when the one before has been answered,
// and replies wait behind it, since requests of a queue pair stay in order. A server with one thread answers a call before it reads the
// data of the next.
func (b *batch) readDepth() {
	for _, k := range b.order {
		if k.depth > 1 || k.queued {
			continue
		}
		var reads []*call
		k.each(func(x *call) {
			if x.firstRead != 0 {
				reads = append(reads, x)
			}
		})
		if len(reads) < 16 {
			continue
		}
		slices.SortStableFunc(reads, func(a, c *call) int { return cmp.Compare(a.firstRead, c.firstRead) })
		chained, behind := 0, 0
		for i, x := range reads[1:] {
			a := reads[i]
			gap := x.firstRead - a.lastRead
			// The server had the call, but asked for its data only when it had that of the other.
			if k.depth != 1 && x.wayS < 0 || x.callEnd+max(x.wayS, 0) > a.lastRead || gap < k.floor[0]*9/10 || gap > max(k.floor[0], 0)+max(k.floor[1], 0)+turn {
				continue
			}
			chained++
			if a.answer > x.firstRead {
				behind++
			}
		}
		if chained*10 < (len(reads)-1)*6 || behind*10 < chained*7 {
			continue
		}
		f := &finding{code: ReadDepth, side: k.shallow, where: k.where(), clock: Calls, certainty: Likely, limit: 1}
		k.each(func(x *call) { f.of(x, x.take(b.held(x))) })
		if f.time > 0 {
			k.queued = true
		}
		b.Recorder.found(f)
	}
}

// turn is how long an adapter may need to send the next Read Request, in nanoseconds.
const turn = 20_000

// slowLink is the pace of 20 Gb/s, in nanoseconds for a KiB. Links of today's adapters are faster: what comes at a slower pace without a
// gap has a bottleneck; what comes faster may be all that is asked for.
const (
	slowLink = 410
	fastLink = 200    // as for 40 Gb/s
	slowest  = 82_000 // 100 Mb/s
)

// linkFull finds links that carry all they can: the packets of a direction follow each other at one pace, without gaps, while several
// calls wait.
func (b *batch) linkFull() {
	for _, k := range b.order {
		l := b.lanesOf(k)
		if l == nil || k.queued || k.fabric >= rdma.IWARP {
			continue
		}
		for side := range l {
			b.full(k, &l[side], rdma.Side(side) != k.client)
		}
	}
}

func (b *batch) full(k *conn, l *lane, server bool) {
	if k.queued || l.cnps >= pacedLeast {
		return
	}
	pace, took := l.usual()
	var open, busy, app int64
	k.each(func(x *call) {
		open += max(x.end-max(x.start, busy), 0)
		busy = max(busy, x.end)
		app += x.app
	})
	if pace < slowLink || pace > slowest || l.fastest()*2 < pace || open <= 0 || took*10 < open*8 || app < 3*open {
		return // packets that come closer to each other than usual have had a gap before them
	}
	f := &finding{code: LinkFull, side: Network, where: k.where(), clock: Calls, certainty: Likely, what: "server", typical: int64(8 * 1024 / pace * 1e9)}
	if !server {
		f.what = "client"
	}
	rest := 1 - fastLink/pace // a link that is faster has its queue, too, if all want more than it carries
	k.each(func(x *call) { f.of(x, x.take(int64(float64(x.app)*rest))) })
	k.queued = f.time > 0
	b.Recorder.found(f)
}
