package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// formats returns the printf formats of a bpftrace script, by the event that they print.
func formats(t *testing.T, script string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../docs/bpftrace", script))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`printf\("(.*)\\n"`).FindAllSubmatch(b, -1) {
		if !strings.HasPrefix(string(m[1]), "#") {
			var e ftrace.Event
			if !e.Parse([]byte(strings.NewReplacer("%s-%d [%03d] %d.%09d", "x-1 [000] 1.5").Replace(string(m[1])))) {
				t.Fatalf("%s: %s is no event", script, m[1])
			}
			out[string(e.Name)] = string(m[1])
		}
	}
	return out
}

// event is one as the trace has it.
type event struct {
	Time   int64
	Name   string
	Fields []string
}

// Value returns what follows "key=" or "key:".
func (e *event) Value(key string) string {
	for _, f := range e.Fields {
		if rest, ok := strings.CutPrefix(f, key); ok && rest != "" && strings.ContainsRune("=:", rune(rest[0])) {
			return rest[1:]
		}
	}
	return ""
}

// events reads the events of a trace.
func events(t *testing.T, name string) (all []event) {
	t.Helper()
	f, err := os.Open(filepath.Join(sampleDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := ftrace.Scan(f, func(e *ftrace.Event) {
		all = append(all, event{e.Time, string(e.Name), strings.Fields(string(e.Rest))})
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func number(s string, base int) uint64 {
	n, _ := strconv.ParseUint(s, base, 64)
	return n
}

// printed is what the scripts would print of a trace, with their formats: the traces of samples have the same
// events.
func printed(t *testing.T, trace string) string {
	var b strings.Builder
	b.WriteString("# bpftrace: calls of 0 us or longer\n")
	form := formats(t, "client.bt")
	for k, v := range formats(t, "server.bt") {
		form[k] = v
	}
	if len(form) != 6 {
		t.Fatalf("%d formats", len(form))
	}
	line := func(event string, time int64, args ...any) {
		fmt.Fprintf(&b, form[event]+"\n", append([]any{"kworker/u4:1", 29, 3, time / 1e9, time % 1e9}, args...)...)
	}
	pending := map[string]map[string]event{}
	for _, e := range events(t, trace) {
		xid := e.Value("xid")
		if pending[xid] == nil {
			pending[xid] = map[string]event{}
		}
		p := pending[xid]
		p[e.Name] = e
		task, clnt, _ := strings.Cut(e.Value("task"), "@")
		id := []any{number(task, 16), number(clnt, 16), number(xid, 0)}
		switch e.Name {
		case "rpc_stats_latency":
			for _, name := range []string{"xprtrdma_marshal", "xprtrdma_reply"} {
				if m, ok := p[name]; ok {
					line(name, m.Time, id...)
				}
			}
			at := slices.IndexFunc(e.Fields, func(s string) bool { return strings.HasPrefix(s, "xid=") })
			service := e.Fields[at+1]
			v := strings.LastIndexByte(service, 'v')
			line(e.Name, e.Time, append(id, service[:v], number(service[v+1:], 10), e.Fields[at+2],
				number(e.Value("backlog"), 10), number(e.Value("rtt"), 10), number(e.Value("execute"), 10))...)
			delete(pending, xid)
		case "svc_stats_latency":
			if d, ok := p["svcrdma_decode_rqst"]; ok {
				line(d.Name, d.Time, id[2])
			}
			s := p["svc_process"]
			line(s.Name, s.Time, s.Value("addr"), id[2], s.Value("service"), number(s.Value("vers"), 10), s.Value("proc"))
			line(e.Name, e.Time, id[2], e.Value("proc"), number(e.Value("execute-us"), 10))
			delete(pending, xid)
		}
	}
	if strings.Contains(b.String(), "%!") {
		t.Fatal("formats and arguments differ")
	}
	return b.String()
}

// The output of the bpftrace scripts in the documentation joins as well as the trace of all events does.
func TestBpftrace(t *testing.T) {
	for _, sample := range []string{"rocev2-nfs41-recall", "rocev2-nfs3-longcall"} {
		results := map[bool]*Result{}
		for _, scripts := range []bool{false, true} {
			j := New(Options{})
			for _, name := range []string{sample + ".trace.client", sample + ".trace.server"} {
				if !scripts {
					read(t, j, name)
					continue
				}
				if err := j.ReadTrace(name, strings.NewReader(printed(t, name))); err != nil {
					t.Fatal(err)
				}
			}
			each(t, filepath.Join(sampleDir, sample+".pcap"), j.Add)
			results[scripts] = j.Result()
		}
		want, got := results[false], results[true]
		if got.Clients.Joined == 0 || got.Servers.Joined == 0 || got.Clients.Joined != want.Clients.Joined || got.Servers.Joined != want.Servers.Joined {
			t.Errorf("%s: %+v and %+v, want %+v and %+v", sample, got.Clients, got.Servers, want.Clients, want.Servers)
		}
		if !reflect.DeepEqual(got.Client, want.Client) || !reflect.DeepEqual(got.Server, want.Server) {
			t.Errorf("%s: other tables:\n%+v\n%+v", sample, got, want)
		}
	}
}

// What `trace-cmd report` prints of the same events, with its header, nanoseconds (-t) and without flags, joins as well.
func TestTraceCmd(t *testing.T) {
	var b strings.Builder
	b.WriteString("cpus=2\n")
	for _, e := range events(t, "rocev2-nfs41-recall.trace.client") {
		fmt.Fprintf(&b, "%16s-%-5d [%03d] %5d.%09d: %-20s %s\n", "kworker/u4:1", 29, 1, e.Time/1e9, e.Time%1e9, e.Name+":", strings.Join(e.Fields, " "))
	}
	want, got := New(Options{}), New(Options{})
	read(t, want, "rocev2-nfs41-recall.trace.client")
	if err := got.ReadTrace("trace.client", strings.NewReader(b.String())); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*Join{want, got} {
		each(t, filepath.Join(sampleDir, "rocev2-nfs41-recall.pcap"), j.Add)
	}
	if w, g := want.Result(), got.Result(); g.Clients.Joined == 0 || !reflect.DeepEqual(w.Client, g.Client) {
		t.Errorf("%+v, want %+v", g.Clients, w.Clients)
	}
}
