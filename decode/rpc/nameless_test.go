package rpc

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
)

// TestNameless: of a transaction that is nameless, Names learns nothing, even if it knows the name that the transaction is about.
func TestNameless(t *testing.T) {
	files, err := filepath.Glob("../../samples/*.pcap*")
	if err != nil || len(files) < 15 {
		t.Fatal(files, err)
	}
	nameless, all := 0, 0
	for _, file := range files {
		r, err := capture.Open([]string{file}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b Brief
		var v View
		for tx, err := range decode.Transactions(r, decode.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			all++
			if !b.Nameless(tx) {
				continue
			}
			nameless++
			if !b.Set(tx) {
				t.Errorf("%s, packet %d: nameless, but not in brief", file, tx.First().Number)
			}
			v.Set(tx)
			v.Names = &Names{}
			if f := v.File(); f != nil {
				v.Names.learn(f.Handle, []byte("a handle that nobody has"), f.Name)
				v.Names.learn([]byte("directory"), f.Handle, []byte("name"))
			}
			byHandle, byName := v.Names.byHandle(), v.Names.byName()
			v.Learn()
			if !maps.Equal(v.Names.byHandle(), byHandle) || !maps.Equal(v.Names.byName(), byName) {
				t.Errorf("%s, packet %d: names of %s", file, tx.First().Number, v.ProcedureName())
			}
		}
		r.Close()
	}
	t.Logf("%d of %d transactions are nameless", nameless, all)
	if nameless < all/4 {
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
