package planner

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// What was written is kept as asked for, as far as the capture has it.
func TestPayload(t *testing.T) {
	for _, x := range []struct {
		mode   plan.PayloadMode
		b      string
		source plan.PayloadMode
		class  plan.Class
	}{
		{plan.Captured, "ab", plan.Pattern, plan.Synthesised}, // cut
		{plan.Pattern, "abcd", plan.Pattern, plan.Synthesised},
		{plan.Pattern, "ab", plan.Pattern, ""},
	} {
		c := content{mode: x.mode, summary: &plan.Summary{}, fail: func(err error) { t.Error(err) }}
		var why reasons
		p := c.payload(7, 100, 4, []byte(x.b), &why)
		var class plan.Class
		if len(why) > 0 {
			class = why[0].Class
		}
		if p.Source != x.source || p.Length != 4 || p.Offset != 100 || p.Object != 7 || class != x.class || c.summary.WriteBytes != 4 {
			t.Errorf("%s of %q: %+v, %v", x.mode, x.b, p, why)
		}
	}
}

// A transaction tells by itself why it is not replayed.
func TestUnfit(t *testing.T) {
	for _, x := range []struct {
		tx    transaction.Transaction
		class plan.Class
		why   string
	}{
		{transaction.Transaction{}, plan.Impossible, notCaptured},
		{transaction.Transaction{Backward: true}, plan.Exact, "a callback: the server's call to its client"},
	} {
		if class, why := unfit(&rpc.View{Tx: &x.tx}); class != x.class || why != x.why {
			t.Errorf("%s, %q, want %s, %q", class, why, x.class, x.why)
		}
	}
}

// A description is the path and the detail that were found last, within its limit.
func TestDescription(t *testing.T) {
	var d description
	d.at([]byte("a"))
	d.at([]byte("b"))
	d.span(5, 10)
	if d != (description{"a/b", "@5+10"}) {
		t.Errorf("%+v", d)
	}
	for range 3 {
		d.at(slices.Repeat([]byte("x"), maxWhat))
	}
	if n := len(d.path); n > 2*maxWhat+4 {
		t.Errorf("a path of %d bytes", n)
	}
}

// A reason counts once, with the class that it had first.
func TestReasons(t *testing.T) {
	var r reasons
	r.add(plan.Inferred, "one")
	r.add(plan.Synthesised, "two")
	r.add(plan.Synthesised, "one")
	if !slices.Equal(r, reasons{{Class: plan.Inferred, Reason: "one"}, {Class: plan.Synthesised, Reason: "two"}}) {
		t.Error(r)
	}
}

// Who made a call is one line of the table, whatever its stamp.
func TestCredentials(t *testing.T) {
	room := room{1 << 20}
	c := credentials{ids: map[string]int{}, room: &room, limit: func(what string) { t.Error(what) }}
	scene := newScene(t)
	scene.call(3, 0, xdr.Void{}, nil)
	var why reasons
	seen := map[int]bool{}
	for _, x := range []oncrpc.Sys{{Stamp: 1, UID: 1}, {Stamp: 2, UID: 1}, {Stamp: 1, UID: 2}} {
		scene.view.Call().Cred = oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: x.Append(nil)}
		seen[c.of(&scene.view, &why)] = true
	}
	if len(seen) != 2 || len(c.list) != 2 || c.list[1].UID != 2 || len(why) > 0 {
		t.Errorf("%v, %+v, %v", seen, c.list, why)
	}
}
