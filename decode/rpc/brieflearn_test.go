package rpc

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestBriefLearn: what a Brief learns is what a View learns, and nearly all that there is to learn from NFSv3. Without Names, it learns nothing.
func TestBriefLearn(t *testing.T) {
	files, err := filepath.Glob("../../samples/*.pcap*")
	if err != nil || len(files) < 15 {
		t.Fatal(files, err)
	}
	brief, all := 0, 0
	for _, file := range files {
		r, err := capture.Open([]string{file}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b Brief
		v, names := View{Names: &Names{}}, &Names{}
		for tx, err := range decode.Transactions(r, decode.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			all++
			v.Set(tx)
			v.Learn()
			if b.Learn(tx, names) {
				brief++
			} else {
				b.Learn(tx, nil)
				known := v.Names
				v.Names = names
				v.Learn()
				v.Names = known
			}
			if !SameNames(names, v.Names) {
				t.Fatalf("%s, packet %d: names of %s", file, tx.First().Number, v.ProcedureName())
			}
		}
		r.Close()
	}
	t.Logf("%d of %d transactions are learned from in brief", brief, all)
	if brief < all/2 {
		t.Error("too few")
	}
}

// TestTeaches asks for each procedure, with the arguments that nobody has filled in. REMOVE changes a name, SETATTR does not.
func TestTeaches(t *testing.T) {
	said := map[string]bool{}
	for program := uint32(100_000); program < 100_300; program++ {
		for version := range uint32(5) {
			def := nfs.Lookup(program, version)
			if def == nil {
				continue
			}
			for i := range def.Procedures {
				p := def.Procedure(uint32(i))
				if p != nil {
					said[fmt.Sprint(def.Name, version, " ", p.Name)] = teaches(ops.Procedure(program, version, uint32(i)), p.NewArgs())
				}
			}
		}
	}
	for name, want := range map[string]bool{
		"nfs3 LOOKUP": true, "nfs3 CREATE": true, "nfs3 MKDIR": true, "nfs3 REMOVE": true, "nfs3 RMDIR": true, "nfs3 RENAME": true,
		"nfs3 READDIRPLUS": true, "nfs4 COMPOUND": true,
		"nfs3 READ": false, "nfs3 WRITE": false, "nfs3 SETATTR": false, "nfs3 ACCESS": false, "nfs3 GETATTR": false, "nfs3 NULL": false,
	} {
		if got, ok := said[name]; !ok || got != want {
			t.Errorf("%s: %t (%t)", name, got, ok)
		}
	}
}

// TestUnknownProcedure calls procedures that a known program does not have.
func TestUnknownProcedure(t *testing.T) {
	var c catalog
	tx := &transaction.Transaction{Program: 100003, Version: 3, Procedure: 1}
	if _, m := c.find(tx); m == nil || c.known(tx) != m {
		t.Error("GETATTR is not known")
	}
	for _, n := range []uint32{22, 1000, 1<<32 - 1} {
		if tx.Procedure = n; c.known(tx) != nil {
			t.Errorf("procedure %d is known", n)
		}
	}
}
