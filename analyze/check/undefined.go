package check

import (
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// defined judges the booleans and enumerations of arguments and results.
func (c *replyRules) defined(v *rpc.View, args, result xdr.Message) {
	if !v.ArgsUndefined && !v.ResultUndefined {
		c.ok(ruleUndefined)
		return
	}
	if v.ArgsUndefined {
		data, _ := v.ArgsData()
		c.undefined(v, Requester, args, data)
	}
	if v.ResultUndefined {
		data, _ := v.ResultData()
		c.undefined(v, Responder, result, data)
	}
}

// undefined reports the first such value of a message.
func (c *replyRules) undefined(v *rpc.View, by Party, m xdr.Message, data []byte) {
	f := c.finding(v, ruleUndefined, by)
	if f == nil {
		return
	}
	// What is encoded again differs from what was decoded where a boolean is neither 0 nor 1.
	b := m.Append(nil)
	for i := 0; i+4 <= min(len(b), len(data)); i += 4 {
		if was := binary.BigEndian.Uint32(data[i:]); was > 1 && binary.BigEndian.Uint32(b[i:]) == 1 {
			f.Expected, f.Seen = "0 or 1 as a boolean", fmt.Sprintf("%d at byte %d of the %s", was, i, bodyName(by))
			c.report(f)
			return
		}
	}
	var w strange
	m.Walk(&w)
	f.Expected, f.Seen = "a value that the protocol defines", fmt.Sprintf("%s %d", w.name, w.value)
	c.report(f)
}

// bodyName is the name of what a side sends.
func bodyName(by Party) string {
	if by == Requester {
		return "arguments"
	}
	return "results"
}

// strange is an xdr.Visitor that finds the first enumeration without a symbol.
type strange struct {
	found bool
	name  string
	value uint32
}

func (w *strange) Enum(name string, v uint32, symbol string) {
	if symbol == "" && !w.found {
		w.found, w.name, w.value = true, name, v
	}
}

func (*strange) Nameless()                    {}
func (*strange) Begin(_, _ string, _ int)     {}
func (*strange) End()                         {}
func (*strange) Uint(string, uint64)          {}
func (*strange) Int(string, int64)            {}
func (*strange) Bool(string, bool)            {}
func (*strange) Flags(string, uint64, string) {}
func (*strange) Bytes(string, []byte)         {}
func (*strange) String(string, []byte)        {}
func (*strange) Data(string, xdr.Data)        {}
func (*strange) Time(string, int64, uint32)   {}
