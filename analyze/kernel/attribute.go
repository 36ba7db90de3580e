package kernel

import (
	"cmp"
	"math/bits"
	"slices"
)

// maxClients bounds the search for the rpc_clnts of a mount: 2^n sets are
// tried.
const maxClients = 10

// maxWork bounds the calls that are examined for all mounts together.
const maxWork = 1 << 26

// attribution is which calls of a trace a mount has counted.
type attribution struct {
	clients []uint32
	calls   []int32 // in Join.calls
}

// attribute finds the calls that the counts of a mount are about. mountstats does not name the mount's
// rpc_clnts, and does not say when it was read. But the calls are counted when they end, in the order of the
// trace; so for each set of clients the total says up to where, and few sets, mostly one, give the number of
// calls of each operation. It returns nil if none does: the trace may lack calls, or be of another time.
func (p *pairing) attribute(g *mountGroup) *attribution {
	if len(g.list) != 1 {
		return nil
	}
	want := make(map[string]uint64)
	var total uint64
	for i := range g.list[0].Ops {
		o := &g.list[0].Ops[i]
		if o.Calls > 0 {
			want[o.Name] += o.Calls
			total += o.Calls
		}
	}
	if total == 0 || total > uint64(len(p.calls)) {
		return nil
	}
	for source := range p.files {
		if p.files[source].Calls == 0 || p.work > maxWork {
			continue
		}
		if a := p.attributeTo(uint16(source), g.version, want, total); a != nil {
			return a
		}
	}
	return nil
}

func (p *pairing) attributeTo(source uint16, version uint32, want map[string]uint64, total uint64) *attribution {
	p.work += len(p.calls)
	var ended []int32
	counts := make(map[uint32]int)
	for i := range p.calls {
		c := &p.calls[i]
		if o := p.names.value(c.op); c.source == source && c.done && o.program == "nfs" && o.version == version {
			ended = append(ended, int32(i))
			counts[c.clnt]++
		}
	}
	if uint64(len(ended)) < total {
		return nil
	}
	slices.SortStableFunc(ended, func(a, b int32) int { return cmp.Compare(p.calls[a].end, p.calls[b].end) })
	clients := make([]uint32, 0, len(counts))
	for c := range counts {
		clients = append(clients, c)
	}
	slices.SortFunc(clients, func(a, b uint32) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	n := min(len(clients), maxClients)
	for n > 0 && len(ended)<<n > maxWork-p.work {
		n--
	}
	clients = clients[:n]
	p.work += len(ended) << n
	sets := make([]int, 0, 1<<len(clients))
	for set := 1; set < 1<<len(clients); set++ {
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b int) int { return cmp.Compare(bits.OnesCount(uint(a)), bits.OnesCount(uint(b))) })
	for _, set := range sets {
		a := &attribution{}
		in := make(map[uint32]bool)
		n := 0
		for i, c := range clients {
			if set>>i&1 != 0 {
				a.clients = append(a.clients, c)
				in[c] = true
				n += counts[c]
			}
		}
		if uint64(n) < total {
			continue
		}
		got := make(map[string]uint64)
		for _, i := range ended {
			if c := &p.calls[i]; in[c.clnt] {
				a.calls = append(a.calls, i)
				name := p.names.value(c.op).name
				if got[name]++; got[name] > want[name] || uint64(len(a.calls)) == total {
					break
				}
			}
		}
		if uint64(len(a.calls)) == total && sameCounts(got, want) {
			slices.Sort(a.clients)
			return a
		}
	}
	return nil
}

func sameCounts(a, b map[string]uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for k, n := range a {
		if b[k] != n {
			return false
		}
	}
	return true
}

// callRow is one call of a mount, with the sums of its transactions.
type callRow struct {
	name    string
	sum     sum
	outside int64
	known   bool
}

// attributed adds the transactions of the calls of a mount.
func (p *pairing) attributed(a *attribution, r *rows) {
	at := make(map[int32]int)
	for _, i := range a.calls {
		at[i] = len(r.calls)
		c := &p.calls[i]
		row := callRow{name: p.names.value(c.op).name}
		if c.wire >= 0 {
			w := &p.wires[c.wire]
			row.sum = sum{calls: 1, recvBytes: w.replyBytes}
			if w.failed {
				row.sum.failed = 1
			}
			if w.unread {
				row.sum.unread = 1
			}
			if w.whole {
				row.sum.whole, row.sum.total, row.sum.min, row.sum.max = 1, w.total, w.total, w.total
				if c.awaited() {
					row.outside, row.known = c.rtt-w.total, true
				}
			}
		}
		r.calls = append(r.calls, row)
	}
	for i := range p.wires {
		if n, ok := at[p.wires[i].call]; ok {
			r.calls[n].sum.sent++
			r.calls[n].sum.sentBytes += p.wires[i].callBytes
			if p.wires[i].partial {
				r.calls[n].sum.partial++
			}
		}
	}
}
