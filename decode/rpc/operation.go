package rpc

import (
	"strconv"
	"sync"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// weight says how much an operation of a COMPOUND tells.
type weight uint8

const (
	noise weight = iota // selects file handles, or is in every COMPOUND
	light               // asks for attributes beside something else
	plain               // looks around
	heavy               // what the COMPOUND is there for
)

// AppendOperation appends what a transaction does in a few words, as listings
// show it: the procedure, or the operations that say what a COMPOUND is for,
// joined by "+": "OPEN", "LOOKUP+GETATTR". Operations that only select file
// handles are left out; so are GETATTR and ACCESS beside an operation that
// counts for more than LOOKUP. An operation that failed is always named. "*3"
// stands for an operation three times in a row, and "+?" at the end for MoreOperations.
func (v *View) AppendOperation(b []byte) []byte {
	all := v.Steps()
	if len(all) == 0 {
		return append(b, v.recorded()...)
	}
	if v.clean != nil && v.projection.good == len(all) {
		return append(b, v.projection.kind.listing...)
	}
	b = appendSteps(b, all, isCallback(v))
	if v.MoreOperations() {
		b = append(b, andMore...)
	}
	return b
}

// andMore ends the name of a COMPOUND that has MoreOperations.
const andMore = "+?"

// appendSteps is AppendOperation for a COMPOUND that has operations.
func appendSteps(b []byte, all []Step, callback bool) []byte {
	if len(all) == 0 {
		return b
	}
	least, count := leastWeight(all, callback)
	start := len(b)
	for i := 0; i < len(all); i++ {
		o := &all[i]
		w := weighNumber(o.Number, callback)
		if !(w >= least || o.Code != 0 && w != noise || count == 0 && i == len(all)-1) {
			continue
		}
		n := 1
		for i+1 < len(all) && all[i+1].Number == o.Number {
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
func leastWeight(all []Step, callback bool) (weight, int) {
	var count [heavy + 1]int
	for i := range all {
		count[weighNumber(all[i].Number, callback)]++
	}
	if count[heavy] > 0 {
		return heavy, count[heavy]
	}
	return light, count[light] + count[plain]
}

// OperationGroup is the name that reports, metrics and rpcrdma-top group a
// transaction by: the procedure, or the one operation that counts for most among
// those that AppendOperation names. If that is not what a COMPOUND is there for, and there are MoreOperations, which may be, the name ends
// with "+?". It does not allocate.
func (v *View) OperationGroup() string {
	if v.clean != nil && v.compound {
		return v.projection.Operation
	}
	all := v.Operations()
	if len(all) == 0 {
		return v.recorded()
	}
	callback := isCallback(v)
	best := &all[0]
	top := weighNumber(best.Number, callback)
	for i := range all {
		if w := weighNumber(all[i].Number, callback); w > top || top == noise && w == noise {
			best, top = &all[i], w
		}
	}
	if top < heavy && v.MoreOperations() {
		return uncertain(best.Name)
	}
	return best.Name
}

// recorded is the procedure; of a COMPOUND that a kernel has recorded what that says it is for, if it does.
func (v *View) recorded() string {
	if k := v.Tx.Kernel; k != nil && k.Operation != "" {
		return k.Operation
	}
	return v.ProcedureName()
}

// uncertain appends andMore to the name of an operation.
func uncertain(name string) string {
	if s, ok := uncertainNames()[name]; ok {
		return s
	}
	return name + andMore
}

// uncertainNames maps the name of each operation below heavy to the same name with andMore.
var uncertainNames = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	for n := range uint32(nfs4.OP_REMOVEXATTR) + 1 {
		for _, callback := range [...]bool{false, true} {
			if weighNumber(n, callback) < heavy {
				name := opName(n, callback)
				names[name] = name + andMore
			}
		}
	}
	return names
})

func isCallback(v *View) bool {
	if m := v.clean; m != nil && m.compound {
		return m.outline.args.Callback
	}
	switch v.Args().(type) {
	case *nfs4.CbCompoundArgs:
		return true
	case nil:
		_, ok := v.Result().(*nfs4.CbCompoundRes)
		return ok
	}
	return false
}
