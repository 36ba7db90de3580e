package text

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// weight says how much an operation of a COMPOUND tells.
type weight uint8

const (
	noise weight = iota // moves file handles about, or is in every COMPOUND
	light               // asks for attributes beside something else
	plain               // looks around
	heavy               // what the COMPOUND is there for
)

// weigh takes the weight of an operation from the table that all share.
func weigh(o *rpc.Operation, callback bool) weight {
	e := ops.Operation(o.Number)
	if callback {
		e = ops.Callback(o.Number)
	}
	if e == nil {
		return heavy
	}
	return heavy - weight(e.Weight)
}

// Operations appends what a transaction does in a few words: the procedure, or
// of a COMPOUND the operations that say what it is for, joined by "+". Those
// that only move file handles about are left out; so are GETATTR and ACCESS
// beside an operation that counts for more than LOOKUP. One that failed is
// always named. "*3" stands for an operation three times in a row.
func Operations(b []byte, v *rpc.View) []byte {
	ops := v.Operations()
	if len(ops) == 0 {
		return append(b, v.ProcedureName()...)
	}
	callback := isCallback(v)
	least, count := leastWeight(ops, callback)
	start := len(b)
	for i := 0; i < len(ops); i++ {
		o := &ops[i]
		w := weigh(o, callback)
		if !(w >= least || o.Code != 0 && w != noise || count == 0 && i == len(ops)-1) {
			continue
		}
		n := 1
		for i+1 < len(ops) && ops[i+1].Number == o.Number {
			i++
			n++
		}
		if len(b) > start {
			b = append(b, '+')
		}
		b = append(b, o.Name...)
		if n > 1 {
			b = append(b, '*')
			b = strconv.AppendInt(b, int64(n), 10)
		}
	}
	return b
}

// leastWeight is the weight from which on operations are shown, and how many
// of them there are.
func leastWeight(ops []rpc.Operation, callback bool) (weight, int) {
	var count [heavy + 1]int
	for i := range ops {
		count[weigh(&ops[i], callback)]++
	}
	if count[heavy] > 0 {
		return heavy, count[heavy]
	}
	return light, count[light] + count[plain]
}

// Operation names the operation that a transaction is there for: the procedure,
// or of a COMPOUND the first of those operations that Operations names. It does
// not allocate.
func Operation(v *rpc.View) string {
	ops := v.Operations()
	if len(ops) == 0 {
		return v.ProcedureName()
	}
	callback := isCallback(v)
	best := &ops[0]
	top := weigh(best, callback)
	for i := range ops {
		if w := weigh(&ops[i], callback); w > top || top == noise && w == noise {
			best, top = &ops[i], w
		}
	}
	return best.Name
}

func isCallback(v *rpc.View) bool {
	switch v.Args.(type) {
	case *nfs4.CbCompoundArgs:
		return true
	case nil:
		_, ok := v.Result.(*nfs4.CbCompoundRes)
		return ok
	}
	return false
}

// compoundTag is the tag of a COMPOUND.
func compoundTag(v *rpc.View) []byte {
	switch a := v.Args.(type) {
	case *nfs4.CompoundArgs:
		return a.Tag
	case *nfs4.CbCompoundArgs:
		return a.Tag
	}
	return nil
}
