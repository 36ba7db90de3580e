package memory

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

var root = &store.Cred{}

func newFile(tb testing.TB, s *Store, name string) store.Handle {
	tb.Helper()
	var a store.Attr
	var w store.Wcc
	if _, err := s.Create(root, s.Root(), []byte(name), &store.Create{}, &a, &w); err != nil {
		tb.Fatal(err)
	}
	return a.Handle
}

func BenchmarkGetAttr(b *testing.B) {
	s := New(Options{})
	h := newFile(b, s, "f")
	var a store.Attr
	b.ReportAllocs()
	for b.Loop() {
		if err := s.GetAttr(h, &a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead1M(b *testing.B) {
	s := New(Options{})
	h := newFile(b, s, "f")
	var w store.Wcc
	if err := s.Write(root, h, 0, make([]byte, BlockSize), false, &w); err != nil {
		b.Fatal(err)
	}
	var r store.ReadResult
	b.SetBytes(BlockSize)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Read(root, h, 0, BlockSize, &r); err != nil || len(r.Data) != BlockSize {
			b.Fatal(err)
		}
		r.Release()
	}
}

func BenchmarkWrite1M(b *testing.B) {
	s := New(Options{})
	h := newFile(b, s, "f")
	data := make([]byte, BlockSize)
	var w store.Wcc
	b.SetBytes(BlockSize)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Write(root, h, 0, data, false, &w); err != nil {
			b.Fatal(err)
		}
	}
}
