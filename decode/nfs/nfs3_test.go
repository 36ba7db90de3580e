package nfs_test

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/xdrtest"
)

// readdirplus is a reply of n entries, as a server with 16-byte handles sends
// it.
func readdirplus(n int) []byte {
	attr := nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o644, Nlink: 1, Size: 4096}}
	m := nfs3.READDIRPLUS3res{Resok: nfs3.READDIRPLUS3resok{DirAttributes: attr}}
	for i := range n {
		m.Resok.Reply.Entries = append(m.Resok.Reply.Entries, nfs3.Entryplus3{
			Fileid: uint64(i), Name: fmt.Appendf(nil, "file%06d", i), Cookie: uint64(i), NameAttributes: attr,
			NameHandle: nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: make([]byte, 16)}},
		})
	}
	return m.Append(nil)
}

func TestLargeReaddirplusAllocs(t *testing.T) {
	// The largest reply that Linux clients ask for is 1 MiB.
	b := readdirplus(7200)
	if len(b) < 1<<20 {
		t.Fatalf("only %d bytes", len(b))
	}
	xdrtest.NoAllocs(t, new(nfs3.READDIRPLUS3res), b)
}

func benchmarkDecode(b *testing.B, m xdr.Message, in []byte) {
	var r xdr.Reader
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		r.Reset(in, 0)
		m.Decode(&r)
	}
	if r.Err() != nil {
		b.Fatal(r.Err())
	}
}

func BenchmarkReaddirplus(b *testing.B) {
	benchmarkDecode(b, new(nfs3.READDIRPLUS3res), readdirplus(300))
}

func BenchmarkGetattr(b *testing.B) {
	m := nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Type: nfs3.NF3REG}}}
	benchmarkDecode(b, new(nfs3.GETATTR3res), m.Append(nil))
}

func BenchmarkWriteArgs(b *testing.B) {
	m := nfs3.WRITE3args{File: nfs3.NfsFh3{Data: make([]byte, 16)}}
	benchmarkDecode(b, new(nfs3.WRITE3args), m.Append(nil))
}

func BenchmarkAppendReaddirplus(b *testing.B) {
	var r xdr.Reader
	in := readdirplus(300)
	r.Reset(in, 0)
	var m nfs3.READDIRPLUS3res
	m.Decode(&r)
	out := make([]byte, 0, len(in))
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		out = m.Append(out[:0])
	}
}
