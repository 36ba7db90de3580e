package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

var testKey = []byte("a key of thirty-two bytes, or so")

// sample is a sample, without compression.
func sample(t testing.TB, name string) string {
	t.Helper()
	p, err := os.ReadFile(filepath.Join("../../samples", name))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(name) == ".zst" {
		z, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		if p, err = z.DecodeAll(p, nil); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "x.pcap")
	if err := os.WriteFile(out, p, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// options are those of the decoder, which traces one XID.
func options(xid uint32) decode.Options {
	return decode.Options{Concurrent: true, Transactions: transaction.Options{
		Packets: 1000, TraceXID: func(x uint32) bool { return x == xid },
	}}
}

// line says what is compared of a transaction.
func line(v *rpc.View) string {
	tx := v.Tx
	return fmt.Sprintf("%08x %d %d %v %d %q %d", tx.XID, tx.Connection.ID, tx.Serial(), tx.First(), len(tx.Operations), v.Path(), len(tx.Packets))
}

// build makes an index, and what the transactions of an XID look like.
func build(t testing.TB, file string, xid uint32) (idx []byte, lines []string, xids []uint32) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{BatchSize: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := &rpc.Names{}
	var b bytes.Buffer
	m, err := NewMaker(&b, f, testKey, decode.StateOptions{Parts: []decode.StatePart{names}})
	if err != nil {
		t.Fatal(err)
	}
	m.Step, m.Worth = 1, 1
	v := rpc.View{Names: names}
	d := decode.New(options(xid), func(tx *transaction.Transaction) {
		m.Add(tx)
		v.Set(tx)
		if tx.XID == xid {
			lines = append(lines, line(&v))
		}
		xids = append(xids, tx.XID)
		v.Learn()
	})
	if err := m.Run(d, r); err != nil {
		t.Fatal(err)
	}
	if err := m.Finish(d, "an outcome"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), lines, xids
}

// look uses an index.
func look(t testing.TB, file string, idx []byte, xid uint32) (lines []string, decoded int64, err error) {
	t.Helper()
	x, err := Open(bytes.NewReader(idx), int64(len(idx)), testKey)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := Identify(f, testKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Check(id); err != nil {
		return nil, 0, err
	}
	runs, err := x.Find(xid)
	if err != nil {
		return nil, 0, err
	}
	for i := range runs {
		r := &runs[i]
		decoded += x.Bytes(r)
		names := &rpc.Names{}
		v := rpc.View{Names: names}
		starts := make(map[int]uint64)
		d := decode.New(options(xid), func(tx *transaction.Transaction) {
			v.Set(tx)
			if tx.XID == xid {
				lines = append(lines, line(&v))
				starts[x.Start(tx)]++
			}
			v.Learn()
		})
		if err := x.Decode(r, d, decode.StateOptions{Parts: []decode.StatePart{names}, Limit: 64 << 20}, f, capture.Options{BatchSize: 20_000}); err != nil {
			return nil, decoded, err
		}
		for k, n := range r.Starts {
			if starts[k] != n {
				return nil, decoded, fmt.Errorf("segment %d: %d transactions, expected %d", k, starts[k], n)
			}
		}
	}
	return lines, decoded, nil
}

// TestIndex finds the transactions of XIDs, with a part of the capture for each.
func TestIndex(t *testing.T) {
	file := sample(t, "rocev2-nfs41-midstream.pcap.zst")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	idx, _, xids := build(t, file, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	part := int64(0)
	const n = 8
	for range n {
		xid := xids[rng.IntN(len(xids))]
		_, want, _ := build(t, file, xid)
		got, decoded, err := look(t, file, idx, xid)
		if err != nil || !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("XID %08x: %q, want %q, %v", xid, got, want, err)
		}
		part += decoded
	}
	if part > info.Size()*n/2 {
		t.Errorf("%d bytes decoded of %d captures with %d", part, n, info.Size())
	}
	if got, decoded, err := look(t, file, idx, 0xfeedf00d); len(got) != 0 || decoded != 0 || err != nil {
		t.Errorf("an XID that is not there: %q, %d bytes decoded, %v", got, decoded, err)
	}
}

// TestSigned opens indexes that somebody has changed, or signed with another key.
func TestSigned(t *testing.T) {
	file := sample(t, "rocev2-nfs41-recall.pcap")
	idx, _, _ := build(t, file, 0)
	open := func(p, key []byte) error {
		_, err := Open(bytes.NewReader(p), int64(len(p)), key)
		return err
	}
	if err := open(idx, testKey); err != nil {
		t.Fatal(err)
	}
	if err := open(idx, []byte("another")); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	for n := range 200 {
		if open(idx[:len(idx)*n/200], testKey) == nil {
			t.Errorf("%d bytes were accepted", len(idx)*n/200)
		}
	}
	for at := len(idx) - 300; at < len(idx); at += 7 {
		bad := bytes.Clone(idx)
		bad[at] ^= 4
		if open(bad, testKey) == nil {
			t.Errorf("byte %d changed, and accepted", at)
		}
	}
}

func tableOf(list ...entry) []byte {
	var l entries
	for _, e := range list {
		l.add(e)
	}
	return l.append(nil)
}

func TestTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var list []entry
		for range rng.IntN(60) {
			e := entry{rng.Uint32N(50), rng.Uint32N(3)}
			if rng.IntN(3) == 0 {
				e.xid = rng.Uint32()
			}
			list = append(list, e)
		}
		table := tableOf(list...)
		want := rng.Uint32N(50)
		n := 0
		for _, e := range list {
			if e.xid == want {
				n++
			}
		}
		got := 0
		if err := find(table, []uint32{want, 1 << 31}, func(e entry) {
			if e.xid == want {
				got++
			}
		}); err != nil || got != n {
			t.Fatalf("%d found, want %d, %v", got, n, err)
		}
	}
}

// FuzzTable reads lists of XIDs that somebody made up.
func FuzzTable(f *testing.F) {
	f.Add(tableOf(entry{5, 0}, entry{9, 0}, entry{1 << 31, 2}), uint32(9))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0x0f}, uint32(0))
	f.Fuzz(func(t *testing.T, table []byte, xid uint32) {
		n := 0
		if find(table, []uint32{xid}, func(e entry) {
			if e.xid != xid {
				t.Fatal(e)
			}
			n++
		}) == nil && n > len(table) {
			t.Fatalf("%d entries in %d bytes", n, len(table))
		}
	})
}

// FuzzIndex changes an index under a right signature, which nobody else can: an error, or an answer, in bounded time and memory.
// The states are left alone, since package snapshot has targets of its own, and who signs one is trusted.
func FuzzIndex(f *testing.F) {
	file := sample(f, "rocev2-nfs41-recall.pcap")
	idx, _, xids := build(f, file, 0)
	wanted := xids[len(xids)/2]
	x, err := Open(bytes.NewReader(idx), int64(len(idx)), testKey)
	if err != nil {
		f.Fatal(err)
	}
	dir, err := json.Marshal(&x.directory)
	if err != nil {
		f.Fatal(err)
	}
	body := idx[:len(idx)-trailerSize-len(dir)]
	f.Add(dir, 0, []byte{})
	f.Add(dir, 40, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, dir []byte, at int, patch []byte) {
		p := bytes.Clone(body)
		if at >= 0 && at < len(p) {
			copy(p[at:], patch)
		}
		var d directory
		if json.Unmarshal(dir, &d) != nil {
			return
		}
		for i := range d.Segments { // sums of parts that were changed
			for _, q := range []*part{&d.Segments[i].Place, &d.Segments[i].XIDs} {
				if q.At >= 0 && q.Length >= 0 && q.At <= int64(len(p)) && q.Length <= int64(len(p))-q.At {
					q.Sum = sum(p[q.At : q.At+q.Length])
				}
			}
		}
		b := bytes.NewBuffer(p)
		w, err := newWriter(io.Discard, testKey)
		if err != nil {
			t.Fatal(err)
		}
		w.w = b
		if w.finish(&d) != nil {
			return
		}
		_, _, _ = look(t, file, b.Bytes(), wanted)
	})
}
