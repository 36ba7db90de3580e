package docs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/internal/testtools/programs"
)

// shown is what a format shows of a transaction: the values by the names of the table. What is not in the table has the name that the
// format gives it.
type shown map[string][]string

// add adds a value of JSON, and those in it.
func (s shown) add(name string, x any) {
	switch x := x.(type) {
	case nil:
	case string:
		if x != "" {
			s[name] = append(s[name], x)
		}
	case map[string]any:
		for k, y := range x {
			s.add(strings.TrimPrefix(name+"."+k, "."), y)
		}
	case []any:
		for _, y := range x {
			s.add(name, y)
		}
	default:
		s[name] = append(s[name], fmt.Sprint(x))
	}
}

// formats read what the programs show of all transactions of a capture.
var formats = map[string]struct {
	bit  fields.Format
	read func(t *testing.T, file string, want []shown) []shown
	// besides are names that are not in the table, or do not show the attribute.
	besides []string
}{
	"-T fields":    {fields.Filter, asFields, nil},
	"show -T json": {fields.NDJSON, asShow, nil},
	"parquet":      {fields.Parquet, asParquet, nil},
	"trace":        {fields.Timeline, asTrace, nil},
	"journal":      {fields.Journal, asJournal, []string{"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER"}},
	"otlp":         {fields.OTLP, asSpans, []string{"rpc.system.name", "rpc.method", "network.transport", "error.type"}},
}

// TestFormats compares what each format shows of the transactions of samples with ndjson: all attributes but those that the table excepts,
// with the same values, and no others.
func TestFormats(t *testing.T) {
	build(t)
	if err := programs.Build(bin, "./cmd/rpcrdma-otlp"); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]map[string]bool)
	for _, file := range []string{
		"samples/rocev2-nfs41-recall.pcap", "samples/rocev2-nfs3-longcall.pcap", "samples/iwarp-nfs40-basic.pcap.zst",
	} {
		want := objects(output(t, "rpcrdma-dump", "-T", "ndjson", file))
		for name, format := range formats {
			if seen[name] == nil {
				seen[name] = make(map[string]bool)
			}
			got := format.read(t, file, want)
			if len(got) != len(want) || len(got) == 0 {
				t.Errorf("%s of %s has %d transactions, ndjson %d", name, file, len(got), len(want))
				continue
			}
			for i := range got {
				for _, b := range format.besides {
					delete(got[i], b)
				}
				compareFormat(t, fmt.Sprintf("%s of %s, transaction %d", name, file, i+1), format.bit, got[i], want[i], seen[name])
			}
		}
	}
	for name, attributes := range seen {
		if len(attributes) < 25 {
			t.Errorf("%s: the samples have %d attributes only", name, len(attributes))
		}
	}
}

func compareFormat(t *testing.T, where string, format fields.Format, got, want shown, seen map[string]bool) {
	t.Helper()
	for _, f := range fields.All() {
		values, has := got[f.Name]
		delete(got, f.Name)
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
	for name, values := range got {
		t.Errorf("%s: %s is not in the table: %q", where, name, values)
	}
}

// isParent reports whether an attribute has members.
func isParent(name string) bool {
	return slices.ContainsFunc(fields.All(), func(f fields.Field) bool { return strings.HasPrefix(f.Name, name+".") })
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

// objects reads objects of JSON.
func objects(out []byte) (list []shown) {
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	for {
		var x any
		if d.Decode(&x) != nil {
			return list
		}
		s := shown{}
		s.add("", x)
		list = append(list, s)
	}
}

func asFields(t *testing.T, file string, _ []shown) (list []shown) {
	args := []string{"-T", "fields", "-E", "aggregator=~"}
	var names []string
	for _, f := range fields.All() {
		if f.In(fields.Filter) {
			args, names = append(args, "-e", f.Name), append(names, f.Name)
		}
	}
	for line := range strings.Lines(string(output(t, "rpcrdma-dump", append(args, file)...))) {
		s := shown{}
		for i, text := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if text != "" {
				s[names[i]] = strings.Split(text, "~")
			}
		}
		list = append(list, s)
	}
	return list
}

func asShow(t *testing.T, file string, want []shown) []shown {
	args := []string{"show", "-T", "json"}
	for _, w := range want {
		xid, err := strconv.ParseUint(w["xid"][0], 10, 32)
		if x := fmt.Sprintf("0x%08x", xid); err == nil && !slices.Contains(args, x) {
			args = append(args, x)
		}
	}
	found := make(map[string]shown)
	for _, s := range objects(output(t, "rpcrdma-dump", append(args, file)...)) {
		whole := shown{}
		for name, values := range s {
			if name, ok := strings.CutPrefix(name, "transaction."); ok {
				whole[name] = values
			}
		}
		found[whole.key()] = whole
	}
	return inOrder(found, want)
}

// key tells a transaction from others.
func (s shown) key() string { return fmt.Sprint(s["xid"], s["call_frame"], s["reply_frame"]) }

// inOrder puts transactions into the order of ndjson.
func inOrder(found map[string]shown, want []shown) (list []shown) {
	for _, w := range want {
		if s := found[w.key()]; s != nil {
			list = append(list, s)
		}
	}
	return list
}

func asParquet(t *testing.T, file string, _ []shown) (list []shown) {
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
		s := shown{}
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
			s.add(name, x)
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

func asTrace(t *testing.T, file string, _ []shown) (list []shown) {
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
		s := shown{}
		s.add("", args)
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
		list = append(list, s.decimal())
	}
	return list
}

func asJournal(t *testing.T, file string, _ []shown) (list []shown) {
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
func entry(b []byte, names map[string]string) shown {
	s := shown{}
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
		s.add(key, string(value))
	}
	return s.decimal()
}

// decimal lets the transaction id be a decimal number.
func (s shown) decimal() shown {
	n, err := strconv.ParseUint(s["xid"][0], 0, 32)
	if err == nil {
		s["xid"] = []string{strconv.FormatUint(n, 10)}
	}
	return s
}

func asSpans(t *testing.T, file string, want []shown) []shown {
	names := map[string]string{}
	for _, f := range fields.All() {
		names["rpcrdma."+f.Name] = f.Name
	}
	for _, f := range fields.All() {
		if f.Attribute != "" {
			names[f.Attribute] = f.Name
		}
	}
	spans := make(map[string]shown)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			in, _ = gzip.NewReader(in)
		}
		var req collectortrace.ExportTraceServiceRequest
		if b, err := io.ReadAll(in); err != nil || proto.Unmarshal(b, &req) != nil {
			t.Error("not readable:", err)
		}
		for _, rs := range req.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, span := range ss.Spans {
					s := shown{}
					for _, a := range span.Attributes {
						name := names[a.Key]
						if name == "" {
							name = a.Key
						}
						s.add(name, attributeValue(a.Value))
					}
					if len(span.ParentSpanId) == 0 {
						spans[s.key()] = s
					}
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	cmd := exec.Command(filepath.Join(bin, "rpcrdma-otlp"), "--endpoint", collector.URL)
	cmd.Stdin = bytes.NewReader(output(t, "rpcrdma-dump", "-T", "ndjson", file))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return inOrder(spans, want)
}

func attributeValue(v *commonpb.AnyValue) any {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	case *commonpb.AnyValue_ArrayValue:
		var list []any
		for _, x := range v.ArrayValue.Values {
			list = append(list, attributeValue(x))
		}
		return list
	}
	return nil
}
