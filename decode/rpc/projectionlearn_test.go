package rpc

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

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
