package scrub

import (
	"bytes"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// values is fields.Values as text.
type values struct{ strings.Builder }

func (v *values) add(x any)                    { fmt.Fprintf(v, " %v", x) }
func (v *values) Uint(n uint64)                { v.add(n) }
func (v *values) Count(n uint64)               { v.add(n) }
func (v *values) Duration(d time.Duration)     { v.add(d) }
func (v *values) Time(ns int64)                { v.add(ns) }
func (v *values) Bool(b bool)                  { v.add(b) }
func (v *values) Text(s string)                { v.add(s) }
func (v *values) TextBytes(b []byte)           { v.add(string(b)) }
func (v *values) Symbol(s string)              { v.add(s) }
func (v *values) Enum(code uint32, sym string) { v.add(code); v.add(sym) }
func (v *values) Addr(a netip.Addr)            { v.add(a) }
func (v *values) Hex(b []byte)                 { v.add(b) }
func (v *values) Stopped() bool                { return false }

// replacedFields are the attributes that tell of people and files.
var replacedFields = map[string]bool{
	"connection_key": true, "client": true, "server": true, "addr": true, "ip": true, "host": true, "net": true, "machine": true,
	"file": true, "file.filehandle": true, "file.name": true, "file.path": true, "file.to": true, "file.new_filehandle": true,
	"new_name": true, "name": true, "path": true, "fh": true, "tunnel.outer_client": true, "tunnel.outer_server": true,
}

// transactions are all attributes of all transactions that stay.
func transactions(t *testing.T, in packets) (all []string) {
	t.Helper()
	var view rpc.View
	var v values
	r := fields.Reader{Values: &v}
	opt := decode.Options{}
	opt.Transactions.OnCompletion = true
	d := decode.New(opt, func(tx *transaction.Transaction) {
		view.SetAll(tx)
		v.Reset()
		for i := range fields.All() {
			if f := &fields.All()[i]; f.Read != nil && !f.Blame && !replacedFields[f.Name] {
				v.WriteString("\n" + f.Name)
				f.Read(&r, &view)
			}
		}
		all = append(all, v.String())
	})
	copied := append(packets(nil), in...)
	if err := d.Run(&copied); err != nil {
		t.Fatal(err)
	}
	return all
}

// same compares the transactions of a capture with those of its copy.
func same(t *testing.T, in, out packets, users bool) {
	t.Helper()
	was, is := transactions(t, in), transactions(t, out)
	if len(was) != len(is) {
		t.Fatalf("%d transactions become %d", len(was), len(is))
	}
	for i := range was {
		if was[i] == is[i] {
			continue
		}
		a, b := strings.Split(was[i], "\n"), strings.Split(is[i], "\n")
		for j := range a {
			if a[j] != b[j] && (!users || !strings.HasPrefix(a[j], "uid") && !strings.HasPrefix(a[j], "gid")) {
				t.Fatalf("transaction %d: %s becomes %s", i, a[j], b[j])
			}
		}
	}
}

// TestWrapped: nor does a tunnel, a tag, a header of another link or, around RoCEv2, one that nobody knows change what is in the copy, nor what is not.
func TestWrapped(t *testing.T) {
	for i, name := range few[1:3] {
		in := read(t, filepath.Join("../../samples", name))
		try := func(kind string, wrapped packets) {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				out, st := scrubbed(t, wrapped, Options{})
				search(t, secretsOf(t, in), out)
				search(t, secretsOf(t, wrapped), out)
				if same(t, wrapped, out, false); st.Messages < 100 {
					t.Errorf("%+v", st)
				}
			})
		}
		for n, k := range wrap.Kinds(5) {
			if testing.Short() && n%3 != i {
				continue
			}
			x := wrap.New(k, 5)
			var wrapped packets
			for _, p := range in {
				data, wire := x.Frame(p.Data, int(p.Length))
				p.Data, p.Length, p.Link = bytes.Clone(data), uint32(wire), k.Link
				wrapped = append(wrapped, p)
			}
			try(k.Name, wrapped)
		}
		if strings.HasPrefix(name, "iwarp") {
			continue // nothing proves it
		}
		var wrapped packets
		for _, p := range in {
			const unknown = "\x99\x99nobody knows"
			p.Data = slices.Concat(p.Data[:12], []byte(unknown), p.Data[14:])
			p.Length += uint32(len(unknown)) - 2
			wrapped = append(wrapped, p)
		}
		try("of no known kind", wrapped)
	}
}

// TestSameTransactions: the copy decodes to the same transactions, but for what tells of people and files.
func TestSameTransactions(t *testing.T) {
	for _, name := range few {
		if strings.HasPrefix(name, "kerberos/") {
			continue // what Kerberos protects is zero
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := read(t, filepath.Join("../../samples", name))
			out, _ := scrubbed(t, in, Options{Users: name == few[0]})
			same(t, in, out, name == few[0])
		})
	}
}
