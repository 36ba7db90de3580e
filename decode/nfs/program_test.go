package nfs

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		program, version, procedure uint32
		name, want                  string
	}{
		{100000, 2, 3, "portmap", "GETPORT"},
		{100000, 3, 3, "rpcbind", "GETADDR"},
		{100000, 4, 11, "rpcbind", "GETADDRLIST"},
		{100003, 2, 0, "nfs", "NULL"},
		{100003, 2, 17, "nfs", "STATFS"},
		{100003, 3, 6, "nfs", "READ"},
		{100003, 3, 21, "nfs", "COMMIT"},
		{100003, 3, 22, "nfs", ""},
		{100003, 4, 1, "nfs", "COMPOUND"},
		{0x40000000, 1, 1, "nfs_cb", "CB_COMPOUND"},
		{100003, 5, 0, "nfs", ""},
		{100005, 1, 6, "mount", "EXPORTALL"},
		{100005, 2, 7, "mount", "PATHCONF"},
		{100005, 3, 1, "mount", "MNT"},
		{100021, 1, 16, "nlm", "NSM_NOTIFY"},
		{100021, 3, 22, "nlm", "NM_LOCK"},
		{100021, 4, 19, "nlm", ""},
		{100021, 4, 23, "nlm", "FREE_ALL"},
		{100024, 1, 6, "nsm", "NOTIFY"},
		{100227, 2, 4, "nfsacl", "ACCESS"},
		{100227, 3, 1, "nfsacl", "GETACL"},
		{1, 1, 1, "", ""},
	} {
		if name := Name(c.program, c.version); name != c.name {
			t.Errorf("program %d version %d is %q, want %q", c.program, c.version, name, c.name)
		}
		got := ""
		if p := Lookup(c.program, c.version).Procedure(c.procedure); p != nil {
			got = p.Name
			if p.Number != c.procedure {
				t.Errorf("%s has number %d, want %d", p.Name, p.Number, c.procedure)
			}
		}
		if got != c.want {
			t.Errorf("procedure %d of %s %d is %q, want %q", c.procedure, c.name, c.version, got, c.want)
		}
	}
}

// Every procedure makes messages, and messages of its own.
func TestProcedures(t *testing.T) {
	for _, table := range tables {
		for _, p := range table {
			for n, proc := range p.Procedures {
				if proc.Name == "" {
					if proc.NewArgs != nil || proc.NewResult != nil || proc.Number != 0 {
						t.Errorf("%s %d: procedure %d without a name", p.Name, p.Version, n)
					}
					continue
				}
				if int(proc.Number) != n {
					t.Errorf("%s %d %s: number %d at index %d", p.Name, p.Version, proc.Name, proc.Number, n)
				}
				for _, fresh := range []func() Message{proc.NewArgs, proc.NewResult} {
					if m := fresh(); m != (xdr.Void{}) && m == fresh() {
						t.Errorf("%s %d %s: the same message twice", p.Name, p.Version, proc.Name)
					}
				}
			}
		}
	}
}

// Results say how the call went, except where the protocol has no status.
func TestStatus(t *testing.T) {
	without := map[string]bool{
		"mount DUMP": true, "mount EXPORT": true, "mount EXPORTALL": true, "mount PATHCONF": true,
		"nsm UNMON": true, "nsm UNMON_ALL": true,
	}
	for _, table := range tables {
		for _, p := range table {
			for _, proc := range p.Procedures {
				if proc.Name == "" || p.Name == "portmap" || p.Name == "rpcbind" || without[p.Name+" "+proc.Name] {
					continue
				}
				m := proc.NewResult()
				if m == (xdr.Void{}) {
					continue
				}
				s, ok := m.(xdr.Status)
				if !ok {
					t.Errorf("%s %d %s: the result has no status", p.Name, p.Version, proc.Name)
				} else if code, symbol := s.StatusCode(); code != 0 || symbol == "" {
					t.Errorf("%s %d %s: status %d %q", p.Name, p.Version, proc.Name, code, symbol)
				}
			}
		}
	}
}

func TestLookupAllocs(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Lookup(100003, 3).Procedure(6) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Lookup(100003, 3).Procedure(6)
	}
}
