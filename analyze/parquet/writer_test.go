package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

const samples = "../../samples"

// TestRowsEqualNDJSON compares each row of each sample with the object that
// package ndjson writes. The reader belongs to the library that has written
// the file; docs/parquet.md tells what other readers were tried.
func TestRowsEqualNDJSON(t *testing.T) {
	files := sampled.Captures(t, "*")
	// What a snapshot length leaves of messages is said in the same words, too.
	for _, n := range []int{86, 170, 230} {
		for _, name := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-mixed-load.pcap.zst"} {
			if testing.Short() && (n != 170 || name != "rocev2-nfs3-basic.pcap.zst") {
				continue
			}
			files = append(files, snapped(t, name, n))
		}
	}
	kinds := []string{"vxlan", "macsec", "erspan3", "ip-in-ip"}
	if testing.Short() {
		kinds = kinds[:2]
	}
	for _, kind := range kinds {
		files = append(files, wrapped(t, kind))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var want []string
			var json ndjson.Encoder
			var out bytes.Buffer
			w := NewWriter(&out, map[string]string{"rpcrdma.host": "h"})
			each(t, file, func(v *rpc.View) {
				v.Principal, v.CallOpened.How, v.ReplyOpened.How = "", rpc.NotOpened, rpc.NotOpened
				switch tx := v.Tx; len(want) % 13 {
				case 2: // as with a keytab: Kerberos without integrity or privacy is the caller's name alone
					if !v.Clean() { // that has no RPCSEC_GSS
						v.Principal = "alice@REALM"
					}
				case 4:
					if !v.Clean() {
						v.Principal, v.CallOpened.How, v.ReplyOpened.How = "bob@REALM", rpc.Verified, rpc.Refused
					}
				case 3:
					tx.Credits = 5
				case 6:
					tx.Slots = 1 << 40
				case 7:
					tx.Retransmits++
				case 8:
					tx.Call.Header.Cut = !v.Clean() // then its time is not divided
				}
				want = append(want, string(json.Append(nil, v)))
				if err := w.Add(v); err != nil {
					t.Fatal(err)
				}
				// Small groups: what is kept from row to row must not leak.
				if len(want)%100 == 0 {
					if err := w.w.Flush(); err != nil {
						t.Fatal(err)
					}
				}
			})
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got := readRows(t, out.Bytes())
			if len(got) != len(want) || w.Rows() != uint64(len(want)) {
				t.Fatalf("%d rows (%d counted), %d transactions", len(got), w.Rows(), len(want))
			}
			for i := range want {
				row := object(got[i])
				a, b := decoded(t, want[i]), decoded(t, row)
				if lost, ok := a.(map[string]any)["lost_ns"].(map[string]any); ok {
					delete(lost, "phases") // only in JSON
				}
				if !reflect.DeepEqual(a, b) {
					t.Fatalf("row %d:\n got %s\nwant %s", i, row, want[i])
				}
			}
		})
	}
}

// TestNull looks for texts of optional columns that are not null, but empty.
func TestNull(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, nil)
	each(t, filepath.Join(samples, "rocev2-nfs42-basic.pcap.zst"), func(v *rpc.View) {
		if err := w.Add(v); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := pq.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]string{{"operations", "list", "element", "status"}, {"gss"}, {"gss_opened"}, {"gss_principal"}, {"file", "stable"}} {
		leaf, ok := f.Schema().Lookup(path...)
		if !ok {
			t.Fatal(path)
		}
		nulls := 0
		for _, g := range f.RowGroups() {
			pages := g.ColumnChunks()[leaf.ColumnIndex].Pages()
			for {
				p, err := pages.ReadPage()
				if err != nil {
					break
				}
				values := make([]pq.Value, p.NumValues())
				n, _ := p.Values().ReadValues(values)
				for _, v := range values[:n] {
					if v.IsNull() {
						nulls++
					} else if len(v.ByteArray()) == 0 {
						t.Fatalf("%v: an empty text", path)
					}
				}
			}
			pages.Close()
		}
		if nulls == 0 {
			t.Errorf("%v: nothing is null", path)
		}
	}
}

// TestReset begins another file where one ends in the middle of a page.
func TestReset(t *testing.T) {
	var fresh, again bytes.Buffer
	a, b := NewWriter(&fresh, nil), NewWriter(&again, nil)
	n := 0
	each(t, filepath.Join(samples, "rocev2-nfs42-basic.pcap.zst"), func(v *rpc.View) {
		if n++; n == 100 {
			b.Reset(&again)
		}
		if err := b.Add(v); err != nil {
			t.Fatal(err)
		}
		if n >= 100 {
			if err := a.Add(v); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, w := range []*Writer{a, b} {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(fresh.Bytes(), again.Bytes()) {
		t.Errorf("%d and %d bytes, which differ", fresh.Len(), again.Len())
	}
}

// snapped is a copy of a sample with packets of at most n bytes.
func snapped(t *testing.T, sample string, n int) string {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join(samples, sample)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w := capture.NewWriter(&out, capture.WriterOptions{})
	for b := (capture.Batch{}); r.Read(&b) == nil; {
		for i := range b.Packets {
			p := &b.Packets[i]
			p.Data = p.Data[:min(n, len(p.Data))]
			if err := w.Write(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(t.TempDir(), fmt.Sprint(n, "-", sample, ".pcapng"))
	if err := errors.Join(w.Flush(), os.WriteFile(file, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// each calls f for every transaction of a capture.
func each(t testing.TB, file string, f func(*rpc.View)) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	view := rpc.View{Names: &rpc.Names{}}
	b := blame.Lean(0)
	opt := decode.Options{Observers: []decode.Observer{b.Recorder.Observer()}}
	opt.Transactions.Ended = b.Ended
	d := decode.New(opt, func(tx *transaction.Transaction) {
		view.Set(tx)
		f(&view)
		view.Learn()
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
}

// readRows returns the rows of a file as objects, with the names of the columns. What is null is left out.
func readRows(t testing.TB, file []byte) (rows []map[string]any) {
	t.Helper()
	r := pq.NewReader(bytes.NewReader(file))
	defer r.Close()
	for {
		row := reflect.New(structure(""))
		switch err := r.Read(row.Interface()); {
		case err == io.EOF:
			return rows
		case err != nil:
			t.Fatal(err)
		}
		o := plainValue(row.Elem()).(map[string]any)
		if o["time"] != o["time_ns"] {
			t.Errorf("row %d: times %v and %v", len(rows), o["time"], o["time_ns"])
		}
		rows = append(rows, o)
	}
}

// plainValue turns structures into objects.
func plainValue(x reflect.Value) any {
	switch x.Kind() {
	case reflect.Struct:
		o := map[string]any{}
		for i := range x.NumField() {
			name, options, _ := strings.Cut(x.Type().Field(i).Tag.Get("parquet"), ",")
			if f := x.Field(i); !f.IsZero() || !strings.Contains(options, "optional") {
				o[name] = plainValue(f)
			}
		}
		return o
	case reflect.Slice:
		list := []any{}
		for i := range x.Len() {
			list = append(list, plainValue(x.Index(i)))
		}
		return list
	case reflect.Pointer:
		return plainValue(x.Elem())
	}
	return x.Interface()
}

// differ reports the first row in which two files differ.
func differ(t testing.TB, a, b []byte) {
	t.Helper()
	left, right := readRows(t, a), readRows(t, b)
	for i := range min(len(left), len(right)) {
		if !reflect.DeepEqual(left[i], right[i]) {
			t.Fatalf("row %d:\n%v\n%v", i, left[i], right[i])
		}
	}
	t.Fatalf("%d and %d rows, %d and %d bytes, which differ", len(left), len(right), len(a), len(b))
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// object writes a row as package ndjson writes its transaction.
func object(o map[string]any) string {
	o["schema"], o["xid_hex"] = ndjson.Schema, fmt.Sprintf("0x%08x", o["xid"])
	delete(o, "time_ns")
	for _, f := range fields.All() {
		x, is := o[f.Name]
		if strings.Contains(f.Name, ".") || !f.In(fields.Parquet) || !f.In(fields.NDJSON) {
			continue
		}
		members, isObject := x.(map[string]any)
		list, isList := x.([]any)
		switch {
		case f.Type == fields.Time && is:
			o[f.Name] = time.Unix(0, x.(int64)).UTC().Format("2006-01-02T15:04:05.000000000Z")
		case isObject && len(members) == 0 || isList && len(list) == 0 && f.Absent == fields.Omitted:
			delete(o, f.Name)
		}
		if _, is := o[f.Name]; !is && f.Absent == fields.Null {
			o[f.Name] = nil
		}
	}
	operations, _ := o["operations"].([]any)
	for _, x := range operations {
		if op := x.(map[string]any); op["status"] == nil {
			op["status"] = nil
		}
	}
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// wrapped is a capture in an encapsulation of a kind.
func wrapped(t testing.TB, kind string) string {
	t.Helper()
	var out bytes.Buffer
	if err := wrap.Copy(kind, 7, filepath.Join(samples, "rocev2-nfs41-recall.pcap"), &out); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), kind+".pcap")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestMetadata(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, map[string]string{"rpcrdma.host": "nfs-7"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := pq.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{"rpcrdma.schema": Schema, "rpcrdma.host": "nfs-7"} {
		if got, _ := f.Lookup(k); got != want {
			t.Errorf("%s is %q, want %q", k, got, want)
		}
	}
	if f.NumRows() != 0 {
		t.Errorf("%d rows in an empty file", f.NumRows())
	}
}

// TestConcurrentWriter writes pages concurrently if there are processors for it, and memory.
func TestConcurrentWriter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var files [4]bytes.Buffer
	for i := range files {
		runtime.GOMAXPROCS(1 + i%2)
		w := NewWriter(&files[i], nil)
		if i >= 2 {
			w = NewSmallWriter(&files[i], nil, 1<<20)
		}
		if got, want := w.w.Concurrent(), i == 1; got != want {
			t.Errorf("writer %d: concurrent %t", i, got)
		}
		for range 3 {
			each(t, filepath.Join(samples, "rocev2-nfs42-basic.pcap.zst"), func(v *rpc.View) {
				if err := w.Add(v); err != nil {
					t.Fatal(err)
				}
			})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(files); i += 2 {
		if !bytes.Equal(files[i].Bytes(), files[i+1].Bytes()) || files[i].Len() == 0 {
			t.Errorf("files of %d and %d bytes", files[i].Len(), files[i+1].Len())
		}
	}
}
