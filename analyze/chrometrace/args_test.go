package chrometrace

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// at appends what an object of ndjson has under the name of an attribute.
func at(list []any, x any, name string) []any {
	switch x := x.(type) {
	case []any:
		for _, y := range x {
			list = at(list, y, name)
		}
	case map[string]any:
		if name != "" {
			key, rest, _ := strings.Cut(name, ".")
			return at(list, x[key], rest)
		}
	default:
		if name == "" && x != nil {
			return append(list, x)
		}
	}
	return list
}

func object(t *testing.T, b []byte) (v map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestAttributes: the slice of a transaction has the values that ndjson has, of all attributes but those that the table excepts, and no others.
func TestAttributes(t *testing.T) {
	seen := map[string]bool{}
	for _, file := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-meta.pcap.zst", "rocev2-nfs3-bulk.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		var want []map[string]any
		var e ndjson.Encoder
		b, _ := export(t, filepath.Join(samples, file), func(_ *Writer, v *rpc.View) {
			want = append(want, object(t, e.Append(nil, v)))
		})
		list, _ := object(t, b)["traceEvents"].([]any)
		for _, x := range list {
			slice := x.(map[string]any)
			if cat := slice["cat"]; slice["ph"] != "X" || cat == "phase" || cat == "rdma" {
				continue
			}
			got := slice["args"].(map[string]any)
			compare(t, got, want[0], seen)
			want = want[1:]
		}
		if len(want) > 0 {
			t.Errorf("%s: %d transactions have no slice", file, len(want))
		}
	}
	if len(seen) < 25 {
		t.Errorf("the samples have %d attributes only: %v", len(seen), seen)
	}
}

func compare(t *testing.T, got, want map[string]any, seen map[string]bool) {
	t.Helper()
	for key := range got {
		if strings.HasPrefix(key, "note") && key != "note_codes" {
			delete(got, key)
		}
	}
	for _, f := range fields.All() {
		key := f.Name
		if s := shortKeys[key]; s != "" {
			key = s
		}
		x, has := got[key]
		if !f.In(fields.Timeline) || f.Name == "notes" {
			if has && shortKeys["file."+key] == "" {
				t.Errorf("%s: the table says that slices lack it", f.Name)
			}
			continue
		}
		delete(got, key)
		if seen[f.Name] = seen[f.Name] || has; f.Name == "xid" || f.Name == "file" {
			continue
		}
		list := at(nil, want, f.Name)
		switch {
		case len(list) == 0 || f.Type == fields.Count && list[0] == json.Number("0"):
			if has {
				t.Errorf("%s: %v, ndjson has none", f.Name, x)
			}
		case f.Several && !reflect.DeepEqual(x, any(list)), !f.Several && x != list[0]:
			t.Errorf("%s: %v, ndjson has %v", f.Name, x, list)
		}
	}
	for key := range got {
		t.Errorf("%s is not in the table", key)
	}
}
