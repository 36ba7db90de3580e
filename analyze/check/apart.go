package check

import (
	"slices"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// table is how often each rule was checked: of most connections, few were.
type table struct {
	kept [ruleCount]uint64 // times that it was judged, and nothing found, which of has not counted yet
	at   [ruleCount]uint8  // 1 + place in the list, or 0
	list []Count
}

// has reports whether a rule was checked.
func (t *table) has(r id) bool { return t.at[r] != 0 || t.kept[r] != 0 }

// of returns the count of a rule, and makes it if needed.
func (t *table) of(r id) *Count {
	if t.at[r] == 0 {
		t.list = append(t.list, Count{})
		t.at[r] = uint8(len(t.list))
	}
	n := &t.list[t.at[r]-1]
	n.Judged += t.kept[r]
	t.kept[r] = 0
	return n
}

// totals are findings by severity.
type totals [Error + 1]uint64

// apart is what a Checker counts by connection, if Options.Apart asks for it.
type apart struct {
	on    bool
	list  []*own
	byID  map[int]*own
	found []saved        // as they came
	next  int            // place of the next one
	kept  [Error + 1]int // how many of them have a severity
	lost  uint64         // findings beyond the limit
	rest  table          // what concerns no connection, or one beyond the limit
	total totals         // of these
	more  bool           // there are connections beyond the limit
	taken int            // connections that Ended has taken out
	gone  totals         // of these
}

// own is a connection.
type own struct {
	id    int
	seen  state.Seen
	calls state.Calls
	near  state.Median
	stats table
	total totals
	last  rdma.Ref // its last packet, once it has ended
}

// Limits of what is counted by connection.
const (
	maxOwn   = 1024
	maxEnded = 1 << 15 // those that Ended takes out
	maxSaved = 16384   // findings
)

// own returns what is counted of a connection; nil beyond the limit.
func (a *apart) own(k *rdma.Connection) *own {
	if !a.on {
		return nil
	}
	o := a.byID[k.ID]
	if o == nil {
		if len(a.list) >= maxOwn || a.taken+len(a.list) >= maxEnded {
			a.more = true
			return nil
		}
		o = &own{id: k.ID, seen: state.NewSeen(k, state.Calls{})}
		a.byID[k.ID] = o
		a.list = append(a.list, o)
	}
	return o
}

// of is where a finding counts.
func (a *apart) of(f *Finding) (*table, *totals) {
	if o := a.byID[f.Connection]; o != nil {
		return &o.stats, &o.total
	}
	return &a.rest, &a.total
}

// keeps reports whether the next finding of a severity is kept for a saved state. Where there is no room, it takes the place of one
// of lesser severity.
func (a *apart) keeps(s Severity) bool { return a.on && (len(a.found) < maxSaved || a.least() < s) }

// least is the least severity of findings that are kept.
func (a *apart) least() Severity {
	for s := range a.kept {
		if a.kept[s] > 0 {
			return Severity(s)
		}
	}
	return Error
}

// keep keeps a finding for a saved state.
func (a *apart) keep(f *Finding) {
	if !a.on {
		return
	}
	if !a.keeps(f.Severity) {
		a.lost++
		return
	}
	if len(a.found) == maxSaved { // the latest of the least severity goes
		s := a.least()
		for i, old := range slices.Backward(a.found) {
			if old.f.Severity == s {
				a.found = slices.Delete(a.found, i, i+1)
				break
			}
		}
		a.kept[s]--
		a.lost++
	}
	a.found = append(a.found, saved{a.next, f})
	a.next++
	a.kept[f.Severity]++
}

// merged moves what was counted of a connection to the one that it is part of.
func (a *apart) merged(into, from *own) {
	if from == nil || into == from {
		return
	}
	to, total := &a.rest, &a.total
	if into != nil {
		to, total = &into.stats, &into.total
		into.calls.Merge(&from.calls)
		into.near.Merge(&from.near)
	}
	to.merge(&from.stats, first)
	total.merge(&from.total)
	from.stats = table{}
	delete(a.byID, from.id)
	for i, o := range a.list {
		if o == from {
			a.list = append(a.list[:i], a.list[i+1:]...)
			break
		}
	}
	for _, x := range a.found {
		if x.f.Connection == from.id && into != nil {
			x.f.Connection = into.id
		}
	}
}

// called remembers a call of a connection.
func (a *apart) called(v *rpc.View) {
	tx := v.Tx
	o := a.byID[tx.Connection.ID]
	if o == nil {
		return
	}
	o.calls.Add(tx.Backward, tx.XID)
	if p, ok := tx.Phases(); ok && p.Divided() {
		o.near.Add(int64(p.Server))
	}
}

// closed describes a connection at its end.
func (o *own) closed(k *rdma.Connection) {
	if o != nil {
		o.seen, o.last = state.NewSeen(k, state.Calls{}), k.Last
	}
}
