package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Concurrent has goroutines work in the same directories and files. Every write
// fills whole pages with one byte, and no read may see a page that is a mixture
// while it holds the result, nor one that changes.
func Concurrent(t *testing.T, st store.Store, opt Options) {
	t.Helper()
	const workers, page, pages = 6, 4096, 300 // more than a block
	var a store.Attr
	var w store.Wcc
	c := opt.Cred
	dirs := []store.Handle{st.Root()}
	for i := range 3 {
		if err := st.Mkdir(&c, dirs[0], fmt.Appendf(nil, "d%d", i), &store.SetAttr{Mask: store.SetMode, Mode: 0o777}, &a, &w); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, a.Handle)
	}
	var files []store.Handle
	for i := range 3 {
		if _, err := st.Create(&c, dirs[0], fmt.Appendf(nil, "f%d", i), &store.Create{}, &a, &w); err != nil {
			t.Fatal(err)
		}
		files = append(files, a.Handle)
	}
	var wg sync.WaitGroup
	for g := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(opt.Seed, uint64(g)))
			c := opt.Cred
			var a store.Attr
			var w, w2 store.Wcc
			var res store.ReadResult
			list := store.DirList{Max: 3, Attrs: true}
			data := make([]byte, 8*page)
			for range opt.Steps {
				f, name := files[r.IntN(len(files))], fmt.Appendf(nil, "n%d", r.IntN(6))
				d, e := dirs[r.IntN(len(dirs))], dirs[r.IntN(len(dirs))]
				switch r.IntN(12) {
				case 0, 1, 2:
					n := (1 + r.IntN(8)) * page
					copy(data, bytes.Repeat([]byte{byte(g + 1)}, n))
					if err := st.Write(&c, f, uint64(r.IntN(pages))*page, data[:n], false, &w); err != nil {
						t.Errorf("write: %v", err)
					}
				case 3, 4, 5:
					if err := st.Read(&c, f, uint64(r.IntN(pages))*page, uint32(1+r.IntN(64))*page, &res); err != nil {
						t.Errorf("read: %v", err)
						break
					}
					for at := 0; at+page <= len(res.Data); at += page {
						if p := res.Data[at : at+page]; !bytes.Equal(p[1:], p[:page-1]) {
							t.Errorf("a page that is a mixture, from %d on", p[0])
						}
					}
					res.Release()
				case 6:
					_, _ = st.Create(&c, d, name, &store.Create{}, &a, &w)
				case 7:
					_ = st.Remove(&c, d, name, &w)
					_ = st.Rmdir(&c, d, name, &w)
				case 8:
					_ = st.Rename(&c, d, name, e, fmt.Appendf(nil, "n%d", r.IntN(6)), &w, &w2)
				case 9:
					_ = st.Link(&c, f, d, name, &a, &w)
					_ = st.Mkdir(&c, e, name, &store.SetAttr{Mask: store.SetMode, Mode: 0o777}, &a, &w)
				case 10:
					_ = st.ReadDir(&c, d, 0, 0, &list)
					_, _ = st.Parent(&c, d)
				case 11:
					_, _ = st.Copy(&c, f, 0, files[r.IntN(len(files))], 0, 4*page, &w)
					_ = st.Lookup(&c, d, name, &a)
				}
			}
		})
	}
	wg.Wait()
}
