package run_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
)

func TestDump(t *testing.T) {
	f := os.Getenv("DUMP")
	if f == "" {
		return
	}
	w := load(t, "../../samples/"+f, plan.Options{})
	for _, o := range w.Tables.Objects[:min(10, len(w.Tables.Objects))] {
		b, _ := json.Marshal(o)
		fmt.Println("object", string(b))
	}
	for _, o := range w.Tables.States {
		b, _ := json.Marshal(o)
		fmt.Println("state", string(b))
	}
	for _, o := range w.Tables.Clients {
		b, _ := json.Marshal(o)
		fmt.Println("client", string(b))
	}
	for _, o := range w.Tables.Sessions {
		b, _ := json.Marshal(o)
		fmt.Println("session", string(b))
	}
	for _, o := range w.Ops {
		o.Layout = nil
		if o.Expect != nil {
			o.Expect.Results = nil
		}
		b, _ := json.Marshal(o)
		fmt.Println(string(b))
	}
	for _, s := range w.Skips {
		b, _ := json.Marshal(s)
		fmt.Println("skip", string(b))
	}
}
