package nfs3

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/xdrtest"
)

const samples = "testdata/messages.txt"

func TestIdentity(t *testing.T) { xdrtest.Identity(t, xdrtest.Messages(Programs)) }

func TestSamples(t *testing.T) {
	xdrtest.Golden(t, xdrtest.Messages(Programs), samples, "testdata/messages.golden")
}

func TestSampleAllocs(t *testing.T) {
	xdrtest.SampleAllocs(t, xdrtest.Messages(Programs), samples)
}

func FuzzDecode(f *testing.F) {
	xdrtest.Fuzz(f, xdrtest.Messages(Programs), xdrtest.Seeds(f, samples))
}

// readdirplus is a reply of n entries, as a server with 16-byte handles sends
// it.
func readdirplus(n int) []byte {
	attr := PostOpAttr{AttributesFollow: true, Attributes: Fattr3{Type: NF3REG, Mode: 0o644, Nlink: 1, Size: 4096}}
	m := READDIRPLUS3res{Resok: READDIRPLUS3resok{DirAttributes: attr}}
	for i := range n {
		m.Resok.Reply.Entries = append(m.Resok.Reply.Entries, Entryplus3{
			Fileid: uint64(i), Name: fmt.Appendf(nil, "file%06d", i), Cookie: uint64(i), NameAttributes: attr,
			NameHandle: PostOpFh3{HandleFollows: true, Handle: NfsFh3{Data: make([]byte, 16)}},
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
	xdrtest.NoAllocs(t, new(READDIRPLUS3res), b)
}

func benchmark(b *testing.B, m xdr.Message, in []byte) {
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

func BenchmarkReaddirplus(b *testing.B) { benchmark(b, new(READDIRPLUS3res), readdirplus(300)) }

func BenchmarkGetattr(b *testing.B) {
	m := GETATTR3res{Resok: GETATTR3resok{ObjAttributes: Fattr3{Type: NF3REG}}}
	benchmark(b, new(GETATTR3res), m.Append(nil))
}

func BenchmarkWriteArgs(b *testing.B) {
	m := WRITE3args{File: NfsFh3{Data: make([]byte, 16)}}
	benchmark(b, new(WRITE3args), m.Append(nil))
}

func BenchmarkAppendReaddirplus(b *testing.B) {
	var r xdr.Reader
	in := readdirplus(300)
	r.Reset(in, 0)
	var m READDIRPLUS3res
	m.Decode(&r)
	out := make([]byte, 0, len(in))
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		out = m.Append(out[:0])
	}
}
