package column

import (
	"bytes"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
)

// TestRepeat writes rows with runs of equal values, one by one, and counted until another value or the end of a page.
func TestRepeat(t *testing.T) {
	type row struct {
		N     int64  `parquet:"n"`
		Word  string `parquet:"word,dict"`
		Maybe *int64 `parquet:"maybe,optional"`
	}
	type cells struct {
		f     *File
		n     *Ints
		word  *Texts
		at    *Levels
		maybe *Ints
	}
	make := func(to *bytes.Buffer, opt Options) *cells {
		f := New(to, SchemaOf(pq.SchemaOf(row{})), opt)
		c := &cells{f: f, n: f.Ints("n", nil), word: f.Texts("word", nil), at: f.Levels()}
		c.maybe = f.Ints("maybe", c.at)
		f.Ready()
		return c
	}
	var concurrent bytes.Buffer
	words := []string{"", "a", "bb", "a longer word that fills the dictionary", "c"}
	rng := rand.New(rand.NewPCG(5, 6))
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	for range rounds {
		opt := Options{Rows: 1 + rng.IntN(100), PageRows: 1 + rng.IntN(30), Dictionary: 1 + rng.IntN(100)}
		var one, counted bytes.Buffer
		concurrent.Reset()
		a, b := make(&one, opt), make(&counted, opt)
		opt.Concurrent = true
		c := make(&concurrent, opt)
		var n, times int64
		var word string
		var null bool
		flush := func() {
			b.n.Repeat(n, int(times))
			b.word.Repeat(word, int(times))
			if null {
				b.at.Nulls(int(times))
			} else {
				b.at.Values(int(times))
				b.maybe.Repeat(n+1, int(times))
			}
			times = 0
		}
		b.f.BeforePage(func() {
			if times > 0 {
				flush()
			}
		})
		for range rng.IntN(40) {
			n, word, null = int64(rng.IntN(3)), words[rng.IntN(len(words))], rng.IntN(2) == 0
			for range 1 + rng.IntN(40) {
				for _, a := range []*cells{a, c} {
					a.n.Add(n)
					a.word.Add(word)
					if null {
						a.at.Null(0, 0)
					} else {
						a.at.Value(0)
						a.maybe.Add(n + 1)
					}
				}
				times++
				for _, f := range []*File{a.f, b.f, c.f} {
					if err := f.EndRow(20); err != nil {
						t.Fatal(err)
					}
				}
			}
			if times > 0 {
				flush()
			}
		}
		for _, f := range []*File{a.f, b.f, c.f} {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(one.Bytes(), counted.Bytes()) {
			t.Fatalf("%+v: %d and %d bytes, which differ", opt, one.Len(), counted.Len())
		}
		if !bytes.Equal(one.Bytes(), concurrent.Bytes()) {
			t.Fatalf("%+v: %d and %d bytes of concurrent pages, which differ", opt, one.Len(), concurrent.Len())
		}
	}
}

// TestEqualPages compresses pages of all lengths twice, between others.
func TestEqualPages(t *testing.T) {
	var p, fresh pager
	var opt Options
	opt.defaults()
	p.init(opt.Codec)
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{0, 1, smallPage, smallPage + 1, 5000, largePage, largePage + 1, 300, 301, 302, 303, 304} {
		for range 3 {
			p.data = p.data[:0]
			for i := range n {
				p.data = append(p.data, byte(i*i>>3))
			}
			if n > 0 && rng.IntN(3) == 0 {
				p.data[rng.IntN(n)]++
			}
			p.compress()
			fresh.init(opt.Codec)
			fresh.data = p.data
			if want := fresh.encode(nil); !bytes.Equal(p.packed, want) {
				t.Fatalf("%d bytes: %x, want %x", n, p.packed, want)
			}
		}
	}
}

// TestMarks writes lists of words one by one, and as they were written before.
func TestMarks(t *testing.T) {
	type row struct {
		Names []string `parquet:"names,list" parquet-element:",dict"`
	}
	rng := rand.New(rand.NewPCG(9, 6))
	words := []string{"SEQUENCE", "PUTFH", "READ", "GETATTR", "a longer word that fills the dictionary"}
	again := 0
	for range 200 {
		opt := Options{Rows: 1 + rng.IntN(100), PageRows: 1 + rng.IntN(30), Dictionary: 1 + rng.IntN(100), Concurrent: rng.IntN(2) == 0}
		var files [2]bytes.Buffer
		var f [2]*File
		var at [2]*Levels
		var names [2]*Texts
		for i := range f {
			f[i] = New(&files[i], SchemaOf(pq.SchemaOf(row{})), opt)
			at[i] = f[i].Levels()
			names[i] = f[i].Texts("names.list.element", at[i])
		}
		lists := make([][]string, 5)
		marks := make([]Marks, len(lists))
		for i := range lists {
			for range 1 + rng.IntN(20) {
				lists[i] = append(lists[i], words[rng.IntN(1+i)])
			}
		}
		for range rng.IntN(200) {
			i := rng.IntN(len(lists))
			list, m := lists[i], &marks[i]
			switch {
			case rng.IntN(5) == 0:
				at[0].Null(0, 0)
				at[1].Nulls(1)
			default:
				for j, s := range list {
					at[0].Value(byte(min(j, 1)))
					names[0].Add(s)
				}
				at[1].List(len(list))
				if names[1].AllAgain(m) {
					again++
					break
				}
				m.Forget()
				for _, s := range list {
					names[1].AddNext(s, m)
				}
			}
			for _, f := range f {
				if err := f.EndRow(20); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, f := range f {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
			t.Fatalf("%+v: %d and %d bytes, which differ", opt, files[0].Len(), files[1].Len())
		}
	}
	if again < 1000 {
		t.Errorf("%d lists were known", again)
	}
}
