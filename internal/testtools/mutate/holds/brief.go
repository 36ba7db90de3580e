package holds

import "github.com/rpcrdma/toolkit/decode/rpc"

// Brief fails the test if b takes the transaction of v, and says anything but what v says. It returns whether b takes it.
func Brief(t T, b *rpc.Brief, v *rpc.View) bool {
	t.Helper()
	if !b.Set(v.Tx) {
		return false
	}
	switch {
	case v.CallErr != nil || v.ReplyErr != nil || v.ArgsErr != nil || v.ResultErr != nil:
		t.Fatalf("in brief %s is without an error: %v, %v, %v, %v", v.ProcedureName(), v.CallErr, v.ReplyErr, v.ArgsErr, v.ResultErr)
	case v.Args() == nil || v.Result() == nil || v.Wrapped() != "":
		t.Fatalf("in brief %s can be read: wrapped %q", v.ProcedureName(), v.Wrapped())
	case b.Procedure != v.Procedure || b.Failed != v.Failed():
		t.Fatalf("in brief: %+v failed: %t; in full: %s, %s", b.Procedure, b.Failed, v.ProcedureName(), v.Status())
	}
	if minor, compound := v.MinorVersion(); b.Compound != compound || compound && (b.Minor != minor || b.Operation != v.OperationGroup()) {
		t.Fatalf("in brief: COMPOUND %t of %d, %s; in full: %t of %d, %s", b.Compound, b.Minor, b.Operation, compound, minor, v.OperationGroup())
	}
	return true
}
