package monitor

import (
	"cmp"
	"slices"
	"time"

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

// Alarm is a threshold that was passed.
type Alarm uint8

// Alarms.
const (
	AlarmAgain   Alarm = iota // share of packets sent again
	AlarmMarked               // share of packets marked
	AlarmCNP                  // CNPs a second
	AlarmRNR                  // RNR NAKs a second
	AlarmStalled              // share of the time that the connection stalled
	AlarmFatal                // NAKs that end a connection
	NumAlarms    = iota
)

var alarmNames = [NumAlarms]string{"again", "marked", "cnp", "rnr", "stalled", "fatal"}

func (a Alarm) String() string { return alarmNames[a] }

// ParseAlarm finds an alarm by its name.
func ParseAlarm(s string) (Alarm, bool) {
	i := slices.Index(alarmNames[:], s)
	return Alarm(max(i, 0)), i >= 0
}

// Thresholds are the values from which there is an alarm, as shares of 1 or numbers a
// second. Zero is off.
type Thresholds [NumAlarms]float64

// DefaultThresholds are for networks that are meant to lose nothing.
var DefaultThresholds = Thresholds{AlarmAgain: 0.001, AlarmMarked: 0.05, AlarmCNP: 1000, AlarmRNR: 1, AlarmStalled: 0.05, AlarmFatal: 1e-9}

// alarms are those that an interval passes.
func (t *Thresholds) alarms(w *Wire, span time.Duration) (list []Alarm) {
	if w.Packets == 0 || span <= 0 {
		return nil
	}
	seconds := span.Seconds()
	have := Thresholds{
		AlarmAgain: float64(w.Again) / float64(w.Packets), AlarmMarked: float64(w.Marked) / float64(w.Packets),
		AlarmCNP: float64(w.CNPs) / seconds, AlarmRNR: float64(w.RNRs) / seconds,
		AlarmStalled: float64(w.Stalled()) / float64(span), AlarmFatal: float64(w.Fatal) / seconds,
	}
	for a := range t {
		if t[a] > 0 && have[a] >= t[a] {
			list = append(list, Alarm(a))
		}
	}
	return list
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
	m.blame.Recorder.Health(func(h *fabric.Health) {
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
		x.Alarms = m.opt.Alarms.alarms(&x.Now, m.span)
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
