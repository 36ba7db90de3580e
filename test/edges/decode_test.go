package edges

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// file is a capture and the keytab that decrypts it, if there is one.
type file struct{ name, path, keytab string }

// files are the samples, and the captures of the folder that the environment
// names. Of two with the same name the first counts.
func files(t *testing.T) (out []file) {
	t.Helper()
	seen := map[string]bool{}
	for _, dir := range []string{"../../samples", "../../samples/kerberos", os.Getenv("RPCRDMA_CAPTURES")} {
		if dir == "" {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name, _, found := strings.Cut(e.Name(), ".pcap")
			if !found || e.IsDir() {
				continue
			}
			if filepath.Base(dir) == "kerberos" {
				name = "kerberos/" + name
			}
			if seen[name] {
				continue
			}
			seen[name] = true
			f := file{name: name, path: filepath.Join(dir, e.Name())}
			for _, k := range []string{".keytab", ".truth/server.keytab"} {
				k = filepath.Join(dir, filepath.Base(name)+k)
				if _, err := os.Stat(k); err == nil {
					f.keytab = k
				}
			}
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return out
}

func load(t *testing.T, paths ...string) (out []capture.Packet) {
	t.Helper()
	r, err := capture.Open(paths, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			p.Data = slices.Clone(p.Data)
			out = append(out, p)
		}
	}
}

// fields is the JSON object of a transaction.
type fields map[string]json.RawMessage

// row is a transaction.
type row struct {
	xid        uint32
	first      uint64 // its first message's first packet
	call       []uint64
	reply      []uint64 // first and last packet of each Send, empty if not seen
	conn       int
	state      transaction.State
	low, high  uint64 // first and last packet of it
	packets    []transaction.Packet
	fields     fields // as decoded from these packets only
	remembered fields // as decoded with the memory of earlier packets
}

// memory is what a decoder remembers beyond a connection: names of files,
// contexts of Kerberos.
type memory struct {
	view rpc.View
}

func (f file) memory(t *testing.T) *memory {
	t.Helper()
	m := &memory{rpc.View{Names: &rpc.Names{}}}
	if f.keytab != "" {
		k, err := krb5.LoadKeytab(f.keytab)
		if err != nil {
			t.Fatal(err)
		}
		m.view.Unwrap = krb5.New(k, krb5.Options{})
	}
	return m
}

func (m *memory) fields(tx *transaction.Transaction) (f fields) {
	var e ndjson.Encoder
	notes := len(tx.Notes)
	m.view.Set(tx)
	if err := json.Unmarshal(e.Append(nil, &m.view), &f); err != nil {
		panic(err)
	}
	m.view.Learn()
	tx.Notes = tx.Notes[:notes] // the two memories stay apart
	return f
}

func transactions(packets []capture.Packet, emit func(*transaction.Transaction)) {
	traffic.Run(decode.New(decode.Options{Transactions: transaction.Options{Packets: 1 << 16}}, emit), packets, 64)
}

// decoded lists the transactions of a capture. before may be nil.
func decoded(packets []capture.Packet, now, before *memory) (rows []*row) {
	transactions(packets, func(tx *transaction.Transaction) {
		r := &row{
			xid: tx.XID, first: tx.First().Number, conn: tx.Connection.ID, state: tx.State,
			packets: slices.Clone(tx.Packets), fields: now.fields(tx),
		}
		if before != nil {
			r.remembered = before.fields(tx)
		}
		r.call, r.reply = ends(&tx.Call), ends(&tx.Reply)
		for _, n := range append(r.call, r.reply...) {
			r.cover(n)
		}
		for _, p := range tx.Packets {
			r.cover(p.Ref.Number)
		}
		rows = append(rows, r)
	})
	return rows
}

func (r *row) cover(n uint64) {
	if r.low == 0 || n < r.low {
		r.low = n
	}
	r.high = max(r.high, n)
}

func ends(m *transaction.Message) []uint64 {
	if !m.Seen() {
		return nil
	}
	return []uint64{m.First.Number, m.Last.Number}
}

// numbers maps the numbers of connections in a part to those in the whole.
type numbers map[int]int

var connectionNote = regexp.MustCompile(`on connection (\d+)`)

// renumbered is f with the numbers of connections that the whole has.
func (n numbers) renumbered(f fields) fields {
	out := fields{}
	for k, v := range f {
		switch k {
		case "connection":
			id, _ := strconv.Atoi(string(v))
			v = json.RawMessage(strconv.Itoa(n[id]))
		case "notes":
			v = connectionNote.ReplaceAllFunc(v, func(b []byte) []byte {
				id, _ := strconv.Atoi(strings.TrimPrefix(string(b), "on connection "))
				return []byte("on connection " + strconv.Itoa(n[id]))
			})
		}
		out[k] = v
	}
	return out
}

// differing names the fields that differ. The key of a connection has the time of its
// first packet, which a part may not have.
func differing(a, b fields) (names []string) {
	for k, v := range a {
		if string(b[k]) != string(v) && k != "connection_key" {
			names = append(names, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}

// carries reports whether a packet brings a new part of a transaction: more than an
// acknowledgement, a refusal, or a repetition.
func carries(p *transaction.Packet) bool {
	switch p.Role {
	case transaction.Ack, transaction.Nak, transaction.Congestion:
		return false
	}
	return !p.Again
}

func whole(m []uint64, lo, hi uint64) bool { return len(m) > 0 && m[0] >= lo && m[1] <= hi }
