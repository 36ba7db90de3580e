// Package formattest compares what a format shows of transactions with what ndjson shows of them.
package formattest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fields"
)

// Transaction is what a format shows of one: the values by the names of the table. What is not in the table has the
// name that the format gives it.
type Transaction map[string][]string

// Add adds a value of JSON, and those in it.
func (s Transaction) Add(name string, x any) {
	switch x := x.(type) {
	case nil:
	case string:
		if x != "" {
			s[name] = append(s[name], x)
		}
	case map[string]any:
		for k, y := range x {
			s.Add(strings.TrimPrefix(name+"."+k, "."), y)
		}
	case []any:
		for _, y := range x {
			s.Add(name, y)
		}
	default:
		s[name] = append(s[name], fmt.Sprint(x))
	}
}

// Key tells a transaction from others.
func (s Transaction) Key() string { return fmt.Sprint(s["xid"], s["call_frame"], s["reply_frame"]) }

// Decimal lets the transaction id be a decimal number.
func (s Transaction) Decimal() Transaction {
	n, err := strconv.ParseUint(s["xid"][0], 0, 32)
	if err == nil {
		s["xid"] = []string{strconv.FormatUint(n, 10)}
	}
	return s
}

// Read reads objects of JSON.
func Read(out []byte) (list []Transaction) {
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	for {
		var x any
		if d.Decode(&x) != nil {
			return list
		}
		s := Transaction{}
		s.Add("", x)
		list = append(list, s)
	}
}

// InOrder puts transactions into the order of ndjson.
func InOrder(found map[string]Transaction, want []Transaction) (list []Transaction) {
	for _, w := range want {
		if s := found[w.Key()]; s != nil {
			list = append(list, s)
		}
	}
	return list
}

// Compare reports all differences between what a format shows of the transactions of a file and ndjson, but for what the table
// excepts, and for the names besides, which are not in it. It adds the attributes that are equal to seen.
func Compare(t *testing.T, where string, format fields.Format, got, want []Transaction, besides []string, seen map[string]bool) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Errorf("%s has %d transactions, ndjson %d", where, len(got), len(want))
		return
	}
	for i := range got {
		for _, b := range besides {
			delete(got[i], b)
		}
		got[i].compare(t, fmt.Sprintf("%s, transaction %d", where, i+1), format, want[i], seen)
	}
}

func (s Transaction) compare(t *testing.T, where string, format fields.Format, want Transaction, seen map[string]bool) {
	t.Helper()
	for _, f := range fields.All() {
		values, has := s[f.Name]
		delete(s, f.Name)
		switch {
		case !f.In(format):
			if has {
				t.Errorf("%s: %s: %q, which the table says it lacks", where, f.Name, values)
			}
		case f.Name == "file" || !f.In(fields.NDJSON): // has no value of its own there
		case slices.Equal(values, want[f.Name]):
			seen[f.Name] = seen[f.Name] || has
		case f.Type == fields.Count && len(values) == 0 && slices.Equal(want[f.Name], []string{"0"}): // left out
		case f.Type == fields.Boolean && slices.Equal(values, []string{"false"}):
		case format == fields.OTLP && len(values) == 0 && len(want[f.Name]) == 1 && len(want[f.Name][0]) == len("18446744073709551615"): // too large
		case isParent(f.Name):
		default:
			t.Errorf("%s: %s: %q, ndjson has %q", where, f.Name, values, want[f.Name])
		}
	}
	for name, values := range s {
		t.Errorf("%s: %s is not in the table: %q", where, name, values)
	}
}

// isParent reports whether an attribute has members.
func isParent(name string) bool {
	return slices.ContainsFunc(fields.All(), func(f fields.Field) bool { return strings.HasPrefix(f.Name, name+".") })
}
