package decode

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/internal/prefetch"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// worker runs the trackers of some groups, as many as there are workers apart.
type worker struct {
	d     *Decoder // the whole
	index int
	far   bool // another processor may have read the packets

	// A few packets at a time are dissected and tracked: what is known of them then fits the first-level cache.
	some   capture.Batch
	x      dissection
	joined dissection // of datagrams put together from fragments
}

// fetched is how many bytes of a packet are fetched before it is dissected. The processor fetches what follows.
const fetched = 256

func newWorker(d *Decoder, index int) *worker {
	w := &worker{d: d, index: index, far: runtime.GOMAXPROCS(0) > 1}
	w.x.set(&d.opt, &d.observer)
	w.joined.set(&d.opt, &d.observer)
	return w
}

// batch takes a worker's part of a batch.
func (w *worker) batch(j *grouped) {
	p := &j.parts[w.index]
	p.endings, p.events = p.endings[:0], p.events[:0]
	list := &w.d.groups.list
	from := w.d.groups.settledBefore(j)
	back := from.back[w.index]
	for i := range back {
		b := &back[i]
		g := list[b.group]
		g.away -= b.bytes
		g.d.tx.Recycle(b.tx)
		*b = ending{}
	}
	from.back[w.index] = back[:0]
	for i := w.index; i < maxGroups; i += len(j.parts) {
		packets := j.packets[i]
		g := list[i]
		switch {
		case g != nil:
			g.begin(j, from.caps[i], p)
		case len(packets) > 0:
			g = w.d.newGroup(i, w.d.groups.limit)
			g.out = p
			list[i] = g
		default:
			j.marks[i] = noMark
			continue
		}
		w.packets(g, j, packets)
		if j.last {
			g.flush(j.end)
		}
		g.consume()
		j.marks[i] = g.mark()
		j.used[i] = g.d.memory.budget.Used() + g.away
	}
}

// packets takes packets of a group, a few at a time.
func (w *worker) packets(g *group, j *grouped, list []int32) {
	for len(list) > 0 {
		few := list[:min(len(list), dissectedAtOnce)]
		list = list[len(few):]
		some := slices.Grow(w.some.Packets[:0], dissectedAtOnce)[:len(few)]
		for k, i := range few {
			some[k] = j.batch.Packets[i]
			if w.far {
				data := some[k].Data
				prefetch.Lines(unsafe.Pointer(unsafe.SliceData(data)), uintptr(min(len(data), fetched)))
			}
		}
		w.some.Packets = some
		w.x.batch(&w.some)
		w.tracked(g, j, few)
	}
}

// tracked takes the packets that were dissected last.
func (w *worker) tracked(g *group, j *grouped, list []int32) {
	d := g.d
	some := w.some.Packets[:len(list)]
	units := w.x.units[:len(list)]
	fast, bytes := uint64(0), uint64(0)
	for k, i := range list {
		p, u := &some[k], &units[k]
		d.stats.Last = rdma.Ref{Time: p.Time, Number: p.Number}
		if u.Full >= 0 || len(j.placed) > 0 {
			w.packet(g, p, u, j.placement(p, i))
		} else { // as in fast, without the call
			fast++
			bytes += uint64(p.Length)
			d.roce.Fast(p, p.Tap, 0, &u.Fast)
			d.memory.budget.Enforce()
		}
		g.done()
	}
	d.counted(fast, bytes)
}

// packet takes a packet of a group that may not be fast.
func (w *worker) packet(g *group, p *capture.Packet, u *roce.Unit, x placement) {
	if u.Full < 0 {
		g.d.fast(p, u, x.tap, x.tenant)
		return
	}
	f, packets := &w.x.full[u.Full], w.x.roce
	if x.whole != nil {
		f = &x.whole.full
		w.joined.roce = w.joined.roce[:0]
		w.joined.upper(f)
		packets = w.joined.roce
	} else {
		g.d.cutBefore(p, &f.frame)
	}
	g.d.placed(p, f, f.in(packets), g.d.stats.Last, x.tap, x.tenant)
	g.d.memory.budget.Enforce()
}
