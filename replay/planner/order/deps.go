package order

import "github.com/rpcrdma/toolkit/replay/plan"

// rank orders kinds: of two reasons for the same edge, the higher is kept.
var rank = map[plan.DepKind]int{
	plan.DepProgram: 0, plan.DepSlot: 1, plan.DepSize: 2, plan.DepName: 3, plan.DepRange: 4, plan.DepCommit: 5, plan.DepSeqid: 6, plan.DepClient: 7,
	plan.DepCookie: 8, plan.DepState: 9, plan.DepCreate: 10,
}

// Flight is a call that is under way until its reply comes.
type Flight struct {
	Op  int
	End int64 // of the reply, in ns from the start of the plan; -1 without one
}

// Deps are the dependencies of an op that is being made.
type Deps struct {
	Flight
	start int64 // of its call
	list  []plan.Dep
	at    map[int]int // of list, by op, if there are many
	uses  *Uses
}

// Begin makes d those of an op whose call was sent at start.
func (d *Deps) Begin(op Flight, start int64, uses *Uses) {
	clear(d.at)
	*d = Deps{Flight: op, start: start, list: d.list[:0], at: d.at, uses: uses}
}

// List are the dependencies, in the order in which they were found. It is valid until Begin.
func (d *Deps) List() []plan.Dep { return d.list }

// After adds an edge to an earlier op, if its reply came before the call.
func (d *Deps) After(f Flight, kind plan.DepKind) {
	if f.End >= 0 && f.End <= d.start {
		d.Needs(f.Op, kind)
	}
}

// Needs adds an edge to an earlier op whatever the times: the call uses a value that only that reply can have
// provided.
func (d *Deps) Needs(op int, kind plan.DepKind) {
	if op == 0 || op >= d.Op {
		return
	}
	if d := d.on(op); d != nil {
		if d.Kind.Optional() || !kind.Optional() && rank[kind] > rank[d.Kind] {
			if !(kind.Optional() && rank[kind] < rank[d.Kind]) {
				d.Kind = kind
			}
		}
		return
	}
	d.list = append(d.list, plan.Dep{Op: op, Kind: kind})
}

// fewDeps is how many edges are searched one by one.
const fewDeps = 16

// on is the edge to an op, nil if there is none.
func (d *Deps) on(op int) *plan.Dep {
	if len(d.list) <= fewDeps {
		for i := range d.list {
			if d.list[i].Op == op {
				return &d.list[i]
			}
		}
		return nil
	}
	for i := len(d.at); i < len(d.list); i++ {
		if d.at == nil {
			d.at = map[int]int{}
		}
		d.at[d.list[i].Op] = i
	}
	if i, ok := d.at[op]; ok {
		return &d.list[i]
	}
	return nil
}
