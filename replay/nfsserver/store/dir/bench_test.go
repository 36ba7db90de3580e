//go:build linux

package dir

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

func prepare(b *testing.B) (*Store, store.Handle) {
	b.Helper()
	s := open(b, b.TempDir(), Options{Writable: true})
	c := me()
	var a store.Attr
	var w store.Wcc
	if _, err := s.Create(&c, s.Root(), []byte("f"), &store.Create{}, &a, &w); err != nil {
		b.Fatal(err)
	}
	if err := s.Write(&c, a.Handle, 0, make([]byte, 1<<20), false, &w); err != nil {
		b.Fatal(err)
	}
	return s, a.Handle
}

func BenchmarkGetAttr(b *testing.B) {
	s, h := prepare(b)
	var a store.Attr
	b.ReportAllocs()
	for b.Loop() {
		if err := s.GetAttr(h, &a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead1M(b *testing.B) {
	s, h := prepare(b)
	c := me()
	var r store.ReadResult
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Read(&c, h, 0, 1<<20, &r); err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
}

func BenchmarkWrite1M(b *testing.B) {
	s, h := prepare(b)
	c := me()
	data := make([]byte, 1<<20)
	var w store.Wcc
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Write(&c, h, 0, data, false, &w); err != nil {
			b.Fatal(err)
		}
	}
}
