package column

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
)

type point struct {
	X int64  `parquet:"x"`
	Y string `parquet:"y,optional,dict"`
}

type record struct {
	N      int64     `parquet:"n"`
	U      uint64    `parquet:"u"`
	Same   int64     `parquet:"same"`
	Word   string    `parquet:"word,dict"`
	Code   string    `parquet:"code,dict"` // in hexadecimal
	Maybe  *int64    `parquet:"maybe,optional"`
	Flag   *bool     `parquet:"flag,optional"`
	Points []point   `parquet:"points,list"`
	Lists  [][]point `parquet:"lists,list"`
}

// columns writes records.
type columns struct {
	f               *File
	n, u, same      *Ints
	word, code      *Texts
	maybe           *Ints
	flag            *Bools
	maybeAt, flagAt *Levels
	at, yAt         *Levels
	x               *Ints
	y               *Texts
	listAt, listYAt *Levels
	listX           *Ints
	listY           *Texts
}

func newColumns(w io.Writer, opt Options) *columns {
	f := New(w, SchemaOf(pq.SchemaOf(record{})), opt)
	c := &columns{f: f, maybeAt: f.Levels(), flagAt: f.Levels(), at: f.Levels(), yAt: f.Levels(), listAt: f.Levels(), listYAt: f.Levels()}
	c.n, c.u, c.same, c.word = f.Ints("n", nil).Delta(), f.Ints("u", nil), f.Ints("same", nil), f.Texts("word", nil)
	c.code = f.Texts("code", nil).Hex()
	c.maybe, c.flag = f.Ints("maybe", c.maybeAt), f.Bools("flag", c.flagAt)
	c.x, c.y = f.Ints("points.list.element.x", c.at), f.Texts("points.list.element.y", c.yAt)
	c.listX, c.listY = f.Ints("lists.list.element.list.element.x", c.listAt), f.Texts("lists.list.element.list.element.y", c.listYAt)
	f.Ready()
	return c
}

func (c *columns) add(r *record) error {
	c.n.Add(r.N)
	c.u.Add(int64(r.U))
	c.same.Add(r.Same)
	scratch := []byte(r.Word)
	c.word.AddBytes(scratch)
	clear(scratch) // its bytes are not needed any more
	code, err := hex.DecodeString(r.Code)
	if err != nil {
		return err
	}
	c.code.AddBytes(code)
	clear(code)
	if r.Maybe == nil {
		c.maybeAt.Null(0, 0)
	} else {
		c.maybeAt.Value(0)
		c.maybe.Add(*r.Maybe)
	}
	if r.Flag == nil {
		c.flagAt.Null(0, 0)
	} else {
		c.flagAt.Value(0)
		c.flag.Add(*r.Flag)
	}
	put := func(p *point, rep, def byte, at, yAt *Levels, x *Ints, y *Texts) {
		at.Value(rep)
		x.Add(p.X)
		if p.Y == "" {
			yAt.Null(rep, def)
		} else {
			yAt.Value(rep)
			y.Add(p.Y)
		}
	}
	if len(r.Points) == 0 {
		c.at.Null(0, 0)
		c.yAt.Null(0, 0)
	}
	for i := range r.Points {
		put(&r.Points[i], byte(min(i, 1)), 1, c.at, c.yAt, c.x, c.y)
	}
	if len(r.Lists) == 0 {
		c.listAt.Null(0, 0)
		c.listYAt.Null(0, 0)
	}
	for i, l := range r.Lists {
		rep := byte(min(i, 1))
		if len(l) == 0 {
			c.listAt.Null(rep, 1)
			c.listYAt.Null(rep, 1)
		}
		for j := range l {
			put(&l[j], rep, 2, c.listAt, c.listYAt, c.listX, c.listY)
			rep = 2
		}
	}
	return c.f.EndRow(len(r.Word) + 64)
}

// some makes records of any kind.
func some(r *rand.Rand, n int) []record {
	const letters = "aé\u2028~z\x00"
	word := func() string {
		if r.IntN(3) > 0 {
			return [...]string{"", "LOOKUP", "GETATTR", "READ"}[r.IntN(4)]
		}
		return strings.Repeat(letters[:1+r.IntN(2)*5], r.IntN(40)) + fmt.Sprint(r.IntN(1000))
	}
	points := func() (l []point) {
		for range max(r.IntN(6)-2, 0) {
			l = append(l, point{r.Int64(), word()})
		}
		return l
	}
	list := make([]record, n)
	for i := range list {
		x := &list[i]
		*x = record{N: int64(i) * 1000, U: r.Uint64(), Same: -7, Word: word(), Code: fmt.Sprintf("%x", word()), Points: points()}
		if r.IntN(2) == 0 {
			v := [...]int64{0, -1, math.MaxInt64, math.MinInt64}[r.IntN(4)]
			x.Maybe = &v
		}
		if r.IntN(3) == 0 {
			v := r.IntN(2) == 0
			x.Flag = &v
		}
		for range max(r.IntN(5)-2, 0) {
			x.Lists = append(x.Lists, points())
		}
	}
	return list
}

// TestRoundTrip reads back what was written, with pages and row groups of many sizes, and compares statistics and
// indexes with the values.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, opt := range []Options{
		{},
		{PageRows: 1},
		{PageRows: 7, Rows: 50},
		{PageBytes: 500, Bytes: 4000},
		{PageRows: 40, Dictionary: 300},
	} {
		var file bytes.Buffer
		c := newColumns(&file, opt)
		for run := range 2 { // the second time with the memory of the first
			file.Reset()
			if run > 0 {
				c.f.Reset(&file)
			}
			want := some(r, 400)
			for i := range want {
				if err := c.add(&want[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.f.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := pq.Read[record](bytes.NewReader(file.Bytes()), int64(file.Len()))
			if err != nil || len(got) != len(want) {
				t.Fatalf("%+v: %d rows, %v", opt, len(got), err)
			}
			for i := range want {
				if a, b := fmt.Sprintf("%#v", flat(&got[i])), fmt.Sprintf("%#v", flat(&want[i])); a != b {
					t.Fatalf("%+v, row %d:\n got %s\nwant %s", opt, i, a, b)
				}
			}
			checkIndexes(t, file.Bytes())
		}
	}
}

// flat makes records comparable: a list without entries is nil.
func flat(r *record) []any {
	out := []any{r.N, r.U, r.Same, r.Word, r.Code, len(r.Points), len(r.Lists)}
	if r.Maybe != nil {
		out = append(out, *r.Maybe)
	}
	if r.Flag != nil {
		out = append(out, *r.Flag)
	}
	for _, p := range r.Points {
		out = append(out, p)
	}
	for _, l := range r.Lists {
		out = append(out, len(l))
		for _, p := range l {
			out = append(out, p)
		}
	}
	return out
}

// checkIndexes compares the index of each page with its values.
func checkIndexes(t *testing.T, b []byte) {
	t.Helper()
	f, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, g := range f.RowGroups() {
		for i, c := range g.ColumnChunks() {
			index, err := c.ColumnIndex()
			if err != nil {
				t.Fatal(err)
			}
			offsets, err := c.OffsetIndex()
			if err != nil || index.NumPages() != offsets.NumPages() {
				t.Fatal(err, index.NumPages())
			}
			typ := c.Type()
			r := c.Pages()
			row := int64(0)
			for n := 0; ; n++ {
				p, err := r.ReadPage()
				if errors.Is(err, io.EOF) {
					if n != index.NumPages() {
						t.Fatalf("column %d: %d pages, %d in the index", i, n, index.NumPages())
					}
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if offsets.FirstRowIndex(n) != row || index.NullCount(n) != p.NumNulls() || index.NullPage(n) != (p.NumNulls() == p.NumValues()) {
					t.Fatalf("column %d, page %d: row %d, %d nulls", i, n, row, p.NumNulls())
				}
				row += p.NumRows()
				values := make([]pq.Value, p.NumValues())
				if k, err := p.Values().ReadValues(values); k != len(values) {
					t.Fatal(k, err)
				}
				for _, v := range values {
					if v.IsNull() {
						continue
					}
					if typ.Compare(v, index.MinValue(n)) < 0 || typ.Compare(v, index.MaxValue(n)) > 0 {
						t.Fatalf("column %d, page %d: %q is not between %q and %q", i, n, v, index.MinValue(n), index.MaxValue(n))
					}
				}
				pages++
			}
			r.Close()
		}
	}
	if pages == 0 {
		t.Fatal("no pages")
	}
}

// TestSameSchema compares the description of a file with that of the library.
func TestSameSchema(t *testing.T) {
	var ours, theirs bytes.Buffer
	c := newColumns(&ours, Options{Metadata: map[string]string{"k": "v"}})
	if err := c.f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pq.NewGenericWriter[record](&theirs).Close(); err != nil {
		t.Fatal(err)
	}
	a, err := pq.OpenFile(bytes.NewReader(ours.Bytes()), int64(ours.Len()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := pq.OpenFile(bytes.NewReader(theirs.Bytes()), int64(theirs.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a.Metadata().Schema, b.Metadata().Schema) || a.NumRows() != 0 {
		t.Errorf("schema\n%v\n%v", a.Schema(), b.Schema())
	}
	if v, ok := a.Lookup("k"); !ok || v != "v" {
		t.Errorf("metadata %q", v)
	}
}

func TestShort(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("~", 100), strings.Repeat("é", 40), strings.Repeat("a", 63) + "é",
		strings.Repeat("a", 62) + "~~~~", strings.Repeat("\U0010ffff", 30), "a" + strings.Repeat("é", 40),
	} {
		b := bounds{[]byte(s), []byte(s)}.short()
		if string(b.lo) > s || string(b.hi) < s {
			t.Errorf("%q is not between %q and %q", s, b.lo, b.hi)
		}
		if len(b.lo) > maxBound || strings.ToValidUTF8(string(b.lo), "?") != string(b.lo) || strings.ToValidUTF8(string(b.hi), "?") != string(b.hi) {
			t.Errorf("%q: %q, %q", s, b.lo, b.hi)
		}
	}
}

// TestWriteError checks that an error of the file is reported, and stays.
func TestWriteError(t *testing.T) {
	c := newColumns(broken{}, Options{Rows: 10})
	list := some(rand.New(rand.NewPCG(1, 1)), 30)
	var err error
	for i := range list {
		if err = c.add(&list[i]); err != nil {
			break
		}
	}
	if !errors.Is(err, errBroken) || !errors.Is(c.f.Close(), errBroken) {
		t.Error(err)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// TestSameBytes makes sure that a file does not depend on what its writer has written before.
func TestSameBytes(t *testing.T) {
	write := func(c *columns, list []record) {
		t.Helper()
		for i := range list {
			if err := c.add(&list[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		opt := Options{Rows: 1 + rng.IntN(40), PageRows: 1 + rng.IntN(20), Dictionary: 1 + rng.IntN(2000)}
		before, list := some(rng, 1+rng.IntN(100)), some(rng, 1+rng.IntN(100))
		var fresh, again bytes.Buffer
		write(newColumns(&fresh, opt), list)
		used := newColumns(io.Discard, opt)
		write(used, before)
		used.f.Reset(&again)
		write(used, list)
		if !bytes.Equal(fresh.Bytes(), again.Bytes()) {
			t.Fatalf("%d and %d bytes, which differ", fresh.Len(), again.Len())
		}
	}
}
