package latency

import (
	"maps"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Lost says what the time of transactions was lost to: those of RDMA whose phases are known. The waits
// for credits and slots, before calls began, are sums over all transactions.
type Lost struct {
	Transactions uint64 `json:"transactions"`
	Time         int64  `json:"time_ns"` // their latencies together
	// Causes are all of rdma.Cause by name. Their times sum to Time.
	Causes map[string]*LostTo `json:"causes"`
	// CreditWaits counts the calls that came when a reply had just freed a credit,
	// CreditWait is how long all credits had been in use before: at most so long they
	// waited. It lies before the calls, and is not part of Time.
	CreditWaits uint64 `json:"credit_waits"`
	CreditWait  int64  `json:"credit_wait_ns"`
	// SlotWaits and SlotWait are the same of the slots of a session.
	SlotWaits uint64 `json:"slot_waits"`
	SlotWait  int64  `json:"slot_wait_ns"`
}

// LostTo is what was lost to one cause.
type LostTo struct {
	Time         int64            `json:"time_ns"`
	Share        float64          `json:"share"`        // of Lost.Time
	Transactions uint64           `json:"transactions"` // that lost something to it
	Phases       map[string]int64 `json:"phases_ns"`
}

// waits are those for a credit or a slot.
type waits struct {
	n    uint64
	time int64
}

func (w *waits) add(d time.Duration) {
	if d > 0 {
		w.n++
		w.time += int64(d)
	}
}

// lost sums up the blame of a group.
type lost struct {
	n            uint64
	time         int64
	credit, slot waits
	sums         [transaction.NumParts][rdma.NumCauses]int64
	touched      [rdma.NumCauses]uint64
}

// waited adds what a call may have waited for before it began, whether or not it was answered.
func (g *group) waited(tx *transaction.Transaction) {
	if max(tx.Credits, tx.Slots) == 0 {
		return
	}
	if g.lost == nil {
		g.lost = new(lost)
	}
	g.lost.credit.add(tx.Credits)
	g.lost.slot.add(tx.Slots)
}

// blame adds what a transaction was lost to.
func (g *group) blame(tx *transaction.Transaction, p *transaction.Phases) {
	if tx.Blame == nil {
		return
	}
	if g.lost == nil {
		g.lost = new(lost)
	}
	l := g.lost
	l.n++
	l.time += int64(p.Total)
	if tx.Blame.Clean {
		l.clean(p)
		return
	}
	var most [rdma.NumCauses]int64
	for ph := range tx.Blame.Shares {
		share, sum := &tx.Blame.Shares[ph], &l.sums[ph]
		for c := range share {
			d := int64(share[c])
			sum[c] += d
			most[c] = max(most[c], d)
		}
	}
	for c, d := range most {
		if d > 0 {
			l.touched[c]++
		}
	}
}

// clean adds the phases of a transaction that lost nothing.
func (l *lost) clean(p *transaction.Phases) {
	l.sums[transaction.PhaseCall][rdma.CauseRest] += int64(p.CallTransfer)
	l.sums[transaction.PhasePull][rdma.CauseRest] += int64(p.ArgumentPull)
	l.sums[transaction.PhaseServer][rdma.CauseRest] += int64(p.Server)
	l.sums[transaction.PhasePush][rdma.CauseRest] += int64(p.ResultPush)
	l.sums[transaction.PhaseReply][rdma.CauseRest] += int64(p.ReplyTransfer)
	if p.CallTransfer > 0 || p.ArgumentPull > 0 || p.Server > 0 || p.ResultPush > 0 || p.ReplyTransfer > 0 {
		l.touched[rdma.CauseRest]++
	}
}

func (l *lost) model() *Lost {
	if l == nil {
		return nil
	}
	x := &Lost{Transactions: l.n, Time: l.time, CreditWaits: l.credit.n, CreditWait: l.credit.time, SlotWaits: l.slot.n, SlotWait: l.slot.time, Causes: make(map[string]*LostTo, rdma.NumCauses)}
	for c := range rdma.Cause(rdma.NumCauses) {
		y := &LostTo{Transactions: l.touched[c], Phases: make(map[string]int64, transaction.NumParts)}
		for ph := range transaction.Parts() {
			y.Time += l.sums[ph][c]
			y.Phases[ph.String()] = l.sums[ph][c]
		}
		x.Causes[c.String()] = y
	}
	return x
}

// merge adds o to l, which may be nil as well.
func (l *Lost) merge(o *Lost) *Lost {
	if o == nil {
		return l
	}
	if l == nil {
		return o.clone()
	}
	l.Transactions += o.Transactions
	l.Time += o.Time
	l.CreditWaits += o.CreditWaits
	l.CreditWait += o.CreditWait
	l.SlotWaits += o.SlotWaits
	l.SlotWait += o.SlotWait
	for name, y := range o.Causes {
		x := l.Causes[name]
		x.Time += y.Time
		x.Transactions += y.Transactions
		for ph, d := range y.Phases {
			x.Phases[ph] += d
		}
	}
	return l
}

// clone copies what merge adds up.
func (l *Lost) clone() *Lost {
	x := *l
	x.Causes = make(map[string]*LostTo, len(l.Causes))
	for name, y := range l.Causes {
		x.Causes[name] = &LostTo{Time: y.Time, Transactions: y.Transactions, Phases: maps.Clone(y.Phases)}
	}
	return &x
}

func (l *Lost) finish() {
	if l == nil {
		return
	}
	for _, y := range l.Causes {
		if l.Time > 0 {
			y.Share = float64(y.Time) / float64(l.Time)
		}
	}
}

// To is what was lost to a cause; zero if nobody has looked.
func (l *Lost) To(c rdma.Cause) LostTo {
	if l == nil || l.Causes[c.String()] == nil {
		return LostTo{}
	}
	return *l.Causes[c.String()]
}

// Looked reports whether there is a transaction of which it is known what its time was lost to.
func (l *Lost) Looked() bool { return l != nil && l.Transactions > 0 }

// Some reports whether anything was lost to one of the causes.
func (l *Lost) Some() bool {
	if l == nil {
		return false
	}
	return l.Time > l.To(rdma.CauseRest).Time
}

// Waited reports whether calls may have waited for a credit or a slot, before they began.
func (l *Lost) Waited() bool { return l != nil && l.CreditWaits+l.SlotWaits > 0 }
