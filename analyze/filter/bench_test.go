package filter

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

var costly = []struct {
	name, expr string
	v          func() *rpc.View
}{
	{"schema/READ3", "op == READ && latency > 1us", func() *rpc.View { return read3().view() }},
	{"schema/COMPOUND", "op == READ && latency > 1us", func() *rpc.View { return open4().view() }},
	{"schema/mismatch", "op == WRITE && latency > 1ms", func() *rpc.View { return open4().view() }},
	{"address", "client == 192.168.0.0/16 && server_endpoint in {1, 5..9, 18}", func() *rpc.View { return read3().view() }},
	{"handle", "handle == 7 && uid == 1000 && machine == client7", func() *rpc.View { return read3().view() }},
	{"status", "status == NFS3_OK && not error", func() *rpc.View { return read3().view() }},
	{"args/READ3", "nfs.READ.offset >= 64k", func() *rpc.View { return read3().view() }},
	{"results/READ3", "nfs.res.eof && nfs.mode == 0644", func() *rpc.View { return read3().view() }},
	{"args/COMPOUND", "nfs.LOOKUP.objname == Größe", func() *rpc.View { return open4().view() }},
	{"other-procedure", "nfs.GETATTR.size > 0", func() *rpc.View { return read3().view() }},
	{"other-program", "mount.dirpath == '/'", func() *rpc.View { return read3().view() }},
	{"file", "file.name contains x || file.offset > 0", func() *rpc.View { return read3().view() }},
	{"transport", "rpcrdma.rdma_credit == 32", func() *rpc.View { return read3().view() }},
}

func BenchmarkMatch(b *testing.B) {
	for _, c := range costly {
		b.Run(c.name, func(b *testing.B) {
			f, v := compile(b, c.expr), c.v()
			b.ReportAllocs()
			for b.Loop() {
				f.Match(v)
			}
		})
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	for _, c := range costly {
		f, v := compile(t, c.expr), c.v()
		f.Match(v) // makes its scratch memory
		if n := testing.AllocsPerRun(100, func() { f.Match(v) }); n != 0 {
			t.Errorf("%s: %v allocations", c.expr, n)
		}
	}
	// Regular expressions run on what is in the message, without a copy.
	for _, expr := range []string{"machine matches '^client'", "client matches '^192'", "file.filehandle matches '^\\x01'", "nfs.mode matches RUSR"} {
		f, v := compile(t, expr), read3().view()
		f.Match(v)
		if n := testing.AllocsPerRun(100, func() { f.Match(v) }); n != 0 {
			t.Errorf("%s: %v allocations", expr, n)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		compile(b, "op == READ && latency > 1ms && nfs.READ.offset >= 64k")
	}
}

func BenchmarkLoadNames(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loadNames(namesText); err != nil {
			b.Fatal(err)
		}
	}
}
