package planner

import (
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// description tells readers what a call is about.
type description struct {
	path   string // of its object
	detail string
}

// of describes a transaction.
func (d *description) of(v *rpc.View) string {
	if !v.Tx.Named {
		return "a reply"
	}
	s := program(v) + " " + procedure(v)
	if d.path != "" {
		s += " " + d.path
	}
	if d.detail != "" {
		s += " " + d.detail
	}
	if len(s) > maxWhat {
		s = s[:maxWhat]
	}
	return strings.ToValidUTF8(s, "?")
}

func program(v *rpc.View) string {
	name := v.ProgramName()
	if name == "" {
		return "unknown"
	}
	if m, ok := v.MinorVersion(); ok {
		return name + "4." + strconv.Itoa(int(m))
	}
	return name + strconv.Itoa(int(v.Tx.Version))
}

func procedure(v *rpc.View) string {
	if v.Tx.Program == nfs4.NFS4_PROGRAM && v.Tx.Version == 4 {
		name, least := "", ops.Noise
		for _, o := range v.Operations() {
			w := ops.Main
			if e := ops.Operation(o.Number); e != nil {
				w = e.Weight
			}
			if name == "" || w < least || least == ops.Noise && w == ops.Noise {
				name, least = o.Name, w
			}
		}
		if name != "" {
			return name
		}
	}
	if n := v.ProcedureName(); n != "" {
		return n
	}
	return "unknown"
}

// at sets the path to a name in the most recently named directory.
func (d *description) at(name []byte) {
	if len(d.path) > maxWhat {
		return // nobody sees more of it
	}
	name = name[:min(len(name), maxWhat)]
	switch d.path {
	case "", "/":
		d.path = string(name)
	default:
		d.path += "/" + string(name)
	}
}

// span adds a range to the description.
func (d *description) span(offset, count uint64) {
	d.detail = "@" + strconv.FormatUint(offset, 10) + "+" + strconv.FormatUint(count, 10)
}
