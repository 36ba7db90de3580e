package planner

import (
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
)

func (c *call) what() string {
	if !c.v.Tx.Named {
		return "a reply"
	}
	s := c.program() + " " + c.procedure()
	if c.path != "" {
		s += " " + c.path
	}
	if c.detail != "" {
		s += " " + c.detail
	}
	if len(s) > maxWhat {
		s = s[:maxWhat]
	}
	return strings.ToValidUTF8(s, "?")
}

func (c *call) program() string {
	v := c.v
	name := v.ProgramName()
	if name == "" {
		return "unknown"
	}
	if m, ok := v.MinorVersion(); ok {
		return name + "4." + strconv.Itoa(int(m))
	}
	return name + strconv.Itoa(int(v.Tx.Version))
}

func (c *call) procedure() string {
	v := c.v
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
func (c *call) at(name []byte) {
	if len(c.path) > maxWhat {
		return // nobody sees more of it
	}
	name = name[:min(len(name), maxWhat)]
	switch c.path {
	case "", "/":
		c.path = string(name)
	default:
		c.path += "/" + string(name)
	}
}

// span adds a range to the description.
func (c *call) span(offset, count uint64) {
	c.detail = "@" + strconv.FormatUint(offset, 10) + "+" + strconv.FormatUint(count, 10)
}
