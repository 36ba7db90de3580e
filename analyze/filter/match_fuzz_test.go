package filter

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzMatch puts a quarter of some expressions and fields to the transactions of
// changed captures.
// An expression and its negation do not both hold.
func FuzzMatch(f *testing.F) {
	var filters, not []*Filter
	for _, s := range []string{
		"op == READ && latency > 1ms", "xid in {1, 5..9} or uid", "client == 192.0.2.0/24 and host != ::1", "nfs.READ.offset >= 64KiB",
		"file.name matches \"^d\"", "file.filehandle == 01:02:ff", "time > 2024-05-01T12:00:00.5Z", "status == NOENT || status != 2",
		"handle !== 0x1234", "nfs.args.WRITE.data.length === 4k", "mount.dirpath matches \"e\"",
	} {
		c, err := Compile(s)
		if err != nil {
			f.Fatalf("%s: %v", s, err)
		}
		n, err := Compile("not (" + s + ")")
		if err != nil {
			f.Fatal(err)
		}
		filters, not = append(filters, c), append(not, n)
	}
	var fields []*FieldRef
	for _, s := range []string{"xid", "nfs.READ.offset", "nfs.args.data.length", "rpc.flavor", "file.path", "notes", "latency", "nfs.attributes.mode", "client"} {
		if r, err := Field(s); err == nil {
			fields = append(fields, r)
		}
	}
	if len(filters) < 8 || len(fields) < 5 {
		f.Fatalf("%d expressions, %d fields", len(filters), len(fields))
	}
	for i := range traffic.Count() {
		f.Add(uint8(i+i%4*traffic.Count()), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte) {
		part := int(which) / traffic.Count() % 4
		var b []string
		holds.Each(t, traffic.Apply(which, program), decode.Options{}, func(v *rpc.View) {
			for i := part; i < len(filters); i += 4 {
				if filters[i].Match(v) == not[i].Match(v) {
					t.Fatalf("expression %d and its negation say the same", i)
				}
			}
			for i := part; i < len(fields); i += 4 {
				b = fields[i].Append(b[:0], v)
			}
		})
	})
}
