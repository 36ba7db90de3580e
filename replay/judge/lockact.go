package judge

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// lockAct is what a call of NLM, or one operation of a COMPOUND, does about a byte range of a file.
type lockAct struct {
	at     int // operation of the COMPOUND; -1 of NLM
	does   lockEffect
	object int
	lockOwner
	byteRange
	exclusive bool
	waits     bool // it may have to wait (NLM)
	cancels   bool // it ends the waiting, and not a lock that was granted meanwhile
}

// lockEffect is what an act does.
type lockEffect uint8

const (
	tests lockEffect = iota // LOCKT, TEST
	takes                   // LOCK
	gives                   // LOCKU, UNLOCK, CANCEL, CLOSE
)

// lockOwner is who has a lock: an owner of the plan. Of CLOSE it is whoever has a lock through the
// client's opens: owner is then 0.
type lockOwner struct{ owner, client int }

// nobody is an owner that the plan does not have.
const nobody = -1

func (a lockOwner) same(b lockOwner) bool {
	switch {
	case a.owner == 0 || b.owner == 0:
		return a.client != 0 && a.client == b.client
	case a.owner == nobody || b.owner == nobody:
		return false
	}
	return a.owner == b.owner
}

// byteRange is the bytes from the first to the last one.
type byteRange struct{ from, to uint64 }

func (a byteRange) overlaps(b byteRange) bool { return a.from <= b.to && b.from <= a.to }

// rangeOf is a range of the given number of bytes; whole stands for all bytes up to the end of the file
// (RFC 8881, section 18.10.3; of NLM it is 0).
func rangeOf(offset, length, whole uint64) byteRange {
	if length == whole || length == 0 || length-1 > math.MaxUint64-offset {
		return byteRange{offset, math.MaxUint64}
	}
	return byteRange{offset, offset + length - 1}
}

// excludes reports whether an act decides the outcome of another one: it is somebody else's, and takes or gives
// something that both cannot have.
func (a *lockAct) excludes(b *lockAct) bool {
	return a.object == b.object && a.overlaps(b.byteRange) && !a.same(b.lockOwner) &&
		(a.does == gives || a.does == takes && (a.exclusive || b.exclusive))
}

// locksOf finds the acts of ops. It belongs to one goroutine.
type locksOf struct {
	load   *workload.Workload
	args   *workload.Arguments
	locked []bool  // by object: the plan has a lock of NFSv4 of that file
	owners []int32 // lock owners of NFSv4, in the order of clients and names; nil until they are needed
	list   []lockAct
}

func newLocksOf(w *workload.Workload) locksOf {
	l := locksOf{load: w, args: &workload.Arguments{}, locked: make([]bool, len(w.Tables.Objects)+1)}
	for i := range w.Tables.States {
		if s := &w.Tables.States[i]; s.Kind == plan.LockState && s.Object < len(l.locked) {
			l.locked[s.Object] = true
		}
	}
	return l
}

// owner finds a lock owner by its client and name, as LOCK and LOCKT have them; 0 if there is none.
func (l *locksOf) owner(client int, name []byte) int {
	all := l.load.Tables.Owners
	if l.owners == nil {
		l.owners = []int32{}
		for i := range all {
			if all[i].Kind == "lock" {
				l.owners = append(l.owners, int32(i))
			}
		}
		slices.SortFunc(l.owners, func(a, b int32) int {
			return cmp.Or(cmp.Compare(all[a].Client, all[b].Client), bytes.Compare(all[a].Bytes, all[b].Bytes))
		})
	}
	at, ok := slices.BinarySearchFunc(l.owners, name, func(i int32, name []byte) int {
		return cmp.Or(cmp.Compare(all[i].Client, client), bytes.Compare(all[i].Bytes, name))
	})
	if !ok {
		return 0
	}
	return int(l.owners[at]) + 1
}

// acts returns what an op does about locks. The result is valid until the next call.
func (l *locksOf) acts(o *plan.Op) []lockAct {
	l.list = l.list[:0]
	if o.Compound == nil {
		if o.Program == nlm.NLM_PROG {
			l.nlm(o)
		}
		return l.list
	}
	var args *nfs4.CompoundArgs
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		switch nfs4.NfsOpnum4(c.Op) {
		case nfs4.OP_LOCK, nfs4.OP_LOCKT, nfs4.OP_LOCKU:
			if args == nil {
				a, ok := l.args.Of(o).(*nfs4.CompoundArgs)
				if !ok || len(a.Ops) != len(o.Compound.Ops) {
					return l.list
				}
				args = a
			}
			l.lock4(o, i, args.Ops[i].Body)
		default:
			if e := ops.Operation(c.Op); e == nil || e.Use != ops.Closes {
				continue
			}
			if object := workload.ObjectAt(o, i); object > 0 && object < len(l.locked) && l.locked[object] {
				l.list = append(l.list, lockAct{at: i, does: gives, object: object, lockOwner: lockOwner{client: l.clientOf(c)}, byteRange: byteRange{0, math.MaxUint64}})
			}
		}
	}
	return l.list
}

// clientOf is the client whose state an operation names.
func (l *locksOf) clientOf(c *plan.CompoundOp) int {
	if s := workload.StateOf(c); s > 0 && s <= len(l.load.Tables.States) {
		return l.load.Tables.States[s-1].Client
	}
	return 0
}

// lock4 adds what an operation of NFSv4 does.
func (l *locksOf) lock4(o *plan.Op, at int, args xdr.Message) {
	c := &o.Compound.Ops[at]
	a := lockAct{at: at, object: workload.ObjectAt(o, at), lockOwner: lockOwner{owner: nobody, client: l.clientOf(c)}}
	named := func(name []byte) {
		for i := range c.Args {
			if f := &c.Args[i]; f.Kind == plan.FieldClient {
				a.client = f.Ref
			}
		}
		if id := l.owner(a.client, name); id != 0 {
			a.owner = id
		}
	}
	state := func() {
		if s := workload.StateOf(c); s > 0 && s <= len(l.load.Tables.States) && l.load.Tables.States[s-1].Owner != 0 {
			a.owner = l.load.Tables.States[s-1].Owner
		}
	}
	whole := uint64(math.MaxUint64)
	writes := func(t nfs4.NfsLockType4) bool { return t == nfs4.WRITE_LT || t == nfs4.WRITEW_LT }
	switch m := args.(type) {
	case *nfs4.LOCK4args:
		a.does, a.byteRange, a.exclusive = takes, rangeOf(m.Offset, m.Length, whole), writes(m.Locktype)
		if m.Locker.NewLockOwner {
			named(m.Locker.OpenOwner.LockOwner.Owner)
		} else {
			state()
		}
	case *nfs4.LOCKT4args:
		a.byteRange, a.exclusive = rangeOf(m.Offset, m.Length, whole), writes(m.Locktype)
		named(m.Owner.Owner)
	case *nfs4.LOCKU4args:
		a.does, a.byteRange = gives, rangeOf(m.Offset, m.Length, whole)
		state()
	default:
		return
	}
	if a.object > 0 {
		l.list = append(l.list, a)
	}
}

// nlm adds what a call of NLM does.
func (l *locksOf) nlm(o *plan.Op) {
	a := lockAct{at: -1, object: workload.ObjectAt(o, -1), lockOwner: lockOwner{owner: nobody}}
	for i := range o.Args {
		if f := &o.Args[i]; f.Kind == plan.FieldLockOwner && f.Ref > 0 {
			a.owner = f.Ref
		}
	}
	lock3 := func(l *nlm.NlmLock) byteRange { return rangeOf(uint64(l.LOffset), uint64(l.LLen), 0) }
	lock4 := func(l *nlm.Nlm4Lock) byteRange { return rangeOf(l.LOffset, l.LLen, 0) }
	switch m := l.args.Of(o).(type) {
	case *nlm.NlmTestargs:
		a.byteRange, a.exclusive = lock3(&m.Alock), m.Exclusive
	case *nlm.Nlm4Testargs:
		a.byteRange, a.exclusive = lock4(&m.Alock), m.Exclusive
	case *nlm.NlmLockargs:
		a.does, a.byteRange, a.exclusive, a.waits = takes, lock3(&m.Alock), m.Exclusive, m.Block
	case *nlm.Nlm4Lockargs:
		a.does, a.byteRange, a.exclusive, a.waits = takes, lock4(&m.Alock), m.Exclusive, m.Block
	case *nlm.NlmCancargs:
		a.does, a.cancels, a.byteRange = gives, true, lock3(&m.Alock)
	case *nlm.Nlm4Cancargs:
		a.does, a.cancels, a.byteRange = gives, true, lock4(&m.Alock)
	case *nlm.NlmUnlockargs:
		a.does, a.byteRange = gives, lock3(&m.Alock)
	case *nlm.Nlm4Unlockargs:
		a.does, a.byteRange = gives, lock4(&m.Alock)
	default:
		return // shares
	}
	if a.object > 0 {
		l.list = append(l.list, a)
	}
}
