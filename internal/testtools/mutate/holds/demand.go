package holds

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// questions are what a View can be asked. Each appends the answer.
var questions = []func(b []byte, v *rpc.View) []byte{
	func(b []byte, v *rpc.View) []byte {
		if v.CallErr != nil {
			return fmt.Append(b, v.CallErr, v.Call().XID)
		}
		c := v.Call()
		return fmt.Append(b, c.XID, c.RPCVersion, c.Program, c.Version, c.Procedure, c.Cred, c.Verf, c.GSS, c.Cut, c.Length, c.Payload, c.PayloadLength)
	},
	func(b []byte, v *rpc.View) []byte {
		if v.ReplyErr != nil {
			return fmt.Append(b, v.ReplyErr)
		}
		r := v.Reply()
		return fmt.Append(b, r.XID, r.Stat, r.Verf, r.Accept, r.Reject, r.AuthStat, r.Low, r.High, r.Cut, r.Length, r.Payload, r.PayloadLength)
	},
	func(b []byte, v *rpc.View) []byte { return fmt.Append(b, *v.CallBody()) },
	func(b []byte, v *rpc.View) []byte { return fmt.Append(b, *v.ReplyBody()) },
	func(b []byte, v *rpc.View) []byte {
		return append(fmt.Append(b, v.ArgsErr, v.ArgsCut, v.ArgsLeft), shown(v.Args())...)
	},
	func(b []byte, v *rpc.View) []byte {
		return append(fmt.Append(b, v.ResultErr, v.ResultCut, v.ResultLeft), shown(v.Result())...)
	},
	func(b []byte, v *rpc.View) []byte {
		minor, compound := v.MinorVersion()
		return fmt.Append(b, v.ProgramName(), v.ProcedureName(), minor, compound, v.Wrapped(), v.Opening(), v.Principal)
	},
	func(b []byte, v *rpc.View) []byte { return fmt.Append(b, v.Status()) },
	func(b []byte, v *rpc.View) []byte { return fmt.Append(b, v.Failed()) },
	func(b []byte, v *rpc.View) []byte { return fmt.Append(b, v.Succeeded()) },
	func(b []byte, v *rpc.View) []byte { return fmt.Append(b, v.OperationGroup()) },
	func(b []byte, v *rpc.View) []byte { return v.AppendOperation(b) },
	func(b []byte, v *rpc.View) []byte {
		for _, o := range v.Operations() {
			b = fmt.Append(b, o.Name, o.Number, o.Status, o.Code, o.Args == nil, o.Result == nil)
		}
		return b
	},
	func(b []byte, v *rpc.View) []byte { return fmt.Append(b, v.Steps()) },
	func(b []byte, v *rpc.View) []byte {
		if f := v.File(); f != nil {
			b = fmt.Appendf(b, "%+v", *f)
		}
		return b
	},
	func(b []byte, v *rpc.View) []byte { return append(b, v.Path()...) },
}

// shown is a message as it is encoded, or that there is none.
func shown(m xdr.Message) []byte {
	if m == nil {
		return []byte("none")
	}
	return m.Append(nil)
}

// Demand fails the test if v, which decodes what it is asked for, says anything else than all, which was set by SetAll. Both are asked
// in an order that seed chooses, the second time in another one.
func Demand(t T, v, all *rpc.View, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	var a, b []byte
	for range 2 {
		for _, i := range random.Perm(len(questions)) {
			a, b = questions[i](a[:0], v), questions[i](b[:0], all)
			if !bytes.Equal(a, b) {
				t.Fatalf("question %d about %s: %q, decoded at once %q", i, v.ProcedureName(), a, b)
			}
		}
	}
}
