package docs_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/internal/testtools/formattest"
)

// formats read what the programs show of all transactions of a capture.
var formats = map[string]struct {
	bit  fields.Format
	read func(t *testing.T, file string, want []formattest.Transaction) []formattest.Transaction
	// besides are names that are not in the table, or do not show the attribute.
	besides []string
}{
	"-T fields":    {fields.Filter, asFields, nil},
	"show -T json": {fields.NDJSON, asShow, nil},
	"parquet":      {fields.Parquet, asParquet, nil},
	"trace":        {fields.Timeline, asTrace, nil},
	"journal":      {fields.Journal, asJournal, []string{"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER"}},
}

// TestFormats compares what each format shows of the transactions of samples with ndjson: all attributes but those that the table excepts,
// with the same values, and no others.
func TestFormats(t *testing.T) {
	if left(t) {
		return
	}
	build(t)
	seen := make(map[string]map[string]bool)
	files := []string{"samples/rocev2-nfs41-recall.pcap", "samples/rocev2-nfs3-longcall.pcap", "samples/iwarp-nfs40-basic.pcap.zst"}
	for _, file := range files {
		want := formattest.Read(output(t, "rpcrdma-dump", "-T", "ndjson", file))
		for name, format := range formats {
			if seen[name] == nil {
				seen[name] = make(map[string]bool)
			}
			formattest.Compare(t, name+" of "+file, format.bit, format.read(t, file, want), want, format.besides, seen[name])
		}
	}
	for name, equal := range seen {
		if len(equal) < 25 {
			t.Errorf("%s: the samples have %d attributes only", name, len(equal))
		}
	}
}

// output runs a program, and returns what it prints.
func output(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, program), args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3: the input is incomplete
		t.Fatalf("%v: %v\n%s", cmd.Args, err, stderr.Bytes())
	}
	return out
}

func asFields(t *testing.T, file string, _ []formattest.Transaction) (list []formattest.Transaction) {
	args := []string{"-T", "fields", "-E", "aggregator=~"}
	var names []string
	for _, f := range fields.All() {
		if f.In(fields.Filter) {
			args, names = append(args, "-e", f.Name), append(names, f.Name)
		}
	}
	for line := range strings.Lines(string(output(t, "rpcrdma-dump", append(args, file)...))) {
		s := formattest.Transaction{}
		for i, text := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if text != "" {
				s[names[i]] = strings.Split(text, "~")
			}
		}
		list = append(list, s)
	}
	return list
}

func asShow(t *testing.T, file string, want []formattest.Transaction) []formattest.Transaction {
	args := []string{"show", "-T", "json"}
	for _, w := range want {
		xid, err := strconv.ParseUint(w["xid"][0], 10, 32)
		if x := fmt.Sprintf("0x%08x", xid); err == nil && !slices.Contains(args, x) {
			args = append(args, x)
		}
	}
	found := make(map[string]formattest.Transaction)
	for _, s := range formattest.Read(output(t, "rpcrdma-dump", append(args, file)...)) {
		whole := formattest.Transaction{}
		for name, values := range s {
			if name, ok := strings.CutPrefix(name, "transaction."); ok {
				whole[name] = values
			}
		}
		found[whole.Key()] = whole
	}
	return formattest.InOrder(found, want)
}

func asParquet(t *testing.T, file string, _ []formattest.Transaction) (list []formattest.Transaction) {
	name := filepath.Join(t.TempDir(), "t.parquet")
	output(t, "rpcrdma-dump", "export", "parquet", file, "-w", name)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r := pq.NewReader(bytes.NewReader(b))
	defer r.Close()
	columns := r.Schema().Columns()
	for rows := make([]pq.Row, 1); ; {
		if n, _ := r.ReadRows(rows); n == 0 {
			return list
		}
		s := formattest.Transaction{}
		for _, v := range rows[0] {
			if v.IsNull() {
				continue
			}
			name, x := strings.ReplaceAll(strings.Join(columns[v.Column()], "."), ".list.element", ""), v.String()
			switch f := field(name); {
			case f != nil && f.Type == fields.Time:
				x = time.Unix(0, v.Int64()).UTC().Format("2006-01-02T15:04:05.000000000Z")
			case v.Kind() == pq.Int64 && (f.Wide || strings.HasSuffix(name, ".offset")):
				x = strconv.FormatUint(v.Uint64(), 10)
			}
			s.Add(name, x)
		}
		list = append(list, s)
	}
}

func field(name string) *fields.Field {
	for _, f := range fields.All() {
		if f.Name == name {
			return &f
		}
	}
	return nil
}

func asTrace(t *testing.T, file string, _ []formattest.Transaction) (list []formattest.Transaction) {
	var trace struct{ TraceEvents []map[string]any }
	d := json.NewDecoder(bytes.NewReader(output(t, "rpcrdma-dump", "export", "trace", file, "-w", "-")))
	d.UseNumber()
	if err := d.Decode(&trace); err != nil {
		t.Fatal(err)
	}
	for _, event := range trace.TraceEvents {
		args, _ := event["args"].(map[string]any)
		if cat := event["cat"]; event["ph"] != "X" || cat == "phase" || cat == "rdma" {
			continue
		}
		s := formattest.Transaction{}
		s.Add("", args)
		for _, name := range []string{"offset", "count"} { // their short names
			if s[name] != nil {
				s["file."+name] = s[name]
				delete(s, name)
			}
		}
		for n := 1; s[fmt.Sprint("note", n)] != nil; n++ {
			s["notes"] = append(s["notes"], s[fmt.Sprint("note", n)]...)
			delete(s, fmt.Sprint("note", n))
		}
		list = append(list, s.Decimal())
	}
	return list
}

func asJournal(t *testing.T, file string, _ []formattest.Transaction) (list []formattest.Transaction) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, f := range fields.All() {
		names["RPCRDMA_"+strings.ToUpper(strings.ReplaceAll(f.Name, ".", "_"))] = f.Name
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for b := make([]byte, 1<<18); ; {
			n, err := l.Read(b)
			if err != nil || n == 1 {
				return
			}
			list = append(list, entry(b[:n], names))
		}
	})
	output(t, "rpcrdma-dump", "-T", "journal", "--journal", socket, file)
	end, err := net.Dial("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := end.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	_, _ = end.Close(), l.Close()
	return list
}

// entry reads an entry of the journal (systemd.io/JOURNAL_NATIVE_PROTOCOL).
func entry(b []byte, names map[string]string) formattest.Transaction {
	s := formattest.Transaction{}
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		name, value, whole := bytes.Cut(line, []byte("="))
		if b = rest; !whole {
			n := binary.LittleEndian.Uint64(b)
			value, b = b[8:8+n], b[8+n+1:]
		}
		key := names[string(name)]
		if key == "" {
			key = string(name)
		}
		s.Add(key, string(value))
	}
	return s.Decimal()
}
