package monitor

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// listedFabric is how many connections a snapshot lists: those in most trouble.
const listedFabric = 512

// Wire is what RDMA itself did on a connection.
type Wire struct {
	Packets, Bytes, Again, NAKs, RNRs, Marked, CNPs, Episodes, Fatal uint64
	Lost                                                             [rdma.NumCauses]int64 // ns
}

func (w *Wire) minus(o *Wire) (x Wire) {
	less := func(a, b uint64) uint64 { return a - min(a, b) }
	x = Wire{
		less(w.Packets, o.Packets), less(w.Bytes, o.Bytes), less(w.Again, o.Again), less(w.NAKs, o.NAKs), less(w.RNRs, o.RNRs),
		less(w.Marked, o.Marked), less(w.CNPs, o.CNPs), less(w.Episodes, o.Episodes), less(w.Fatal, o.Fatal), w.Lost,
	}
	for i := range x.Lost {
		x.Lost[i] = max(x.Lost[i]-o.Lost[i], 0)
	}
	return x
}

// Stalled is the time lost to all causes together.
func (w *Wire) Stalled() (sum int64) {
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		sum += w.Lost[c]
	}
	return sum
}

// FabricRow is a connection in the view of the fabric.
type FabricRow struct {
	ID         int
	Fabric     string
	Service    string
	Guess      bool // the service is one
	Ends       [2]string
	Ended      bool
	Recovering int64 // age of the oldest loss that was not recovered from, ns; 0: none
	Now, Total Wire  // of the latest interval; since the beginning
	Alarms     []Alarm
}

// wires remembers counts of the last two ends of an interval.
type wires struct{ last, passed map[int]Wire }

func wireOf(h *fabric.Health) Wire {
	return Wire{h.Packets, h.Bytes, h.Again, h.NAKs, h.RNRs, h.Marked, h.CNPs, h.Episodes, h.Fatal, h.Lost}
}

// roll ends an interval.
func (w *wires) roll(r *fabric.Recorder) {
	if w.last == nil {
		w.last, w.passed = make(map[int]Wire), make(map[int]Wire)
	}
	clear(w.passed)
	r.Active(func(h *fabric.Health) {
		now, was := wireOf(h), w.last[h.Connection.ID]
		w.last[h.Connection.ID] = now
		w.passed[h.Connection.ID] = now.minus(&was)
	})
	if len(w.last) > 2*r.Watching()+1024 { // connections that are gone
		last := make(map[int]Wire, r.Watching())
		r.Health(func(h *fabric.Health) { last[h.Connection.ID] = w.last[h.Connection.ID] })
		w.last = last
	}
}

// fabric lists connections: those with an alarm first, then those that stalled longest.
func (m *Model) fabric(s *Snapshot) {
	s.Adapters = m.why.Adapters().Totals()
	m.why.Fabric().Health(func(h *fabric.Health) {
		c := h.Connection
		if c.ID == 0 {
			return
		}
		x := FabricRow{
			ID: c.ID, Fabric: c.Fabric.String(), Service: h.Service.Name, Guess: h.Service.Source == fabric.SourceGuess, Ended: h.Ended,
			Now: m.wires.passed[c.ID], Total: wireOf(h),
		}
		for i := range x.Ends {
			x.Ends[i] = link.AddrString(c.Ends[i].Addr)
		}
		if h.Recovering.Seen() {
			x.Recovering = max(m.now-h.Recovering.Time, 1)
		}
		x.Alarms = m.opt.Alarms.alarms(&x.Now, m.alarmSpan())
		s.Alarms += min(len(x.Alarms), 1)
		s.Fabric = append(s.Fabric, x)
	})
	slices.SortFunc(s.Fabric, func(a, b FabricRow) int {
		return cmp.Or(
			cmp.Compare(len(b.Alarms), len(a.Alarms)), cmp.Compare(b.Now.Stalled(), a.Now.Stalled()),
			cmp.Compare(b.Total.Stalled(), a.Total.Stalled()), cmp.Compare(b.Total.Again, a.Total.Again), cmp.Compare(a.ID, b.ID),
		)
	})
	if n := len(s.Fabric) - listedFabric; n > 0 {
		s.FabricRest, s.Fabric = n, s.Fabric[:listedFabric]
	}
}
