package kernel

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const sampleDir = "../../samples"

func read(t testing.TB, j *Join, names ...string) {
	t.Helper()
	for _, name := range names {
		f, err := os.Open(filepath.Join(sampleDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".mountstats") {
			err = j.ReadMountstats(name, f)
		} else {
			err = j.ReadTrace(name, f)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

// each calls f for every transaction of a capture.
func each(t testing.TB, file string, f func(*rpc.View)) {
	t.Helper()
	r, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var view rpc.View
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		view.Set(tx)
		f(&view)
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
}

// TestKernels compares transactions with the traces and counters of both
// kernels: all that the trace has on this connection is found, nothing takes
// longer on the wire than for the client, and what mountstats counted is what
// the capture holds.
func TestKernels(t *testing.T) {
	for _, c := range []struct {
		sample, file        string
		calls, absent       int
		requests, requests2 int
		several             int
	}{
		{"rocev2-nfs41-recall", "rocev2-nfs41-recall.pcap", 47, 0, 50, 47, 0},
		// Two calls were retransmitted on new connections; 33 went to the client's own rpcbind over a local
		// socket.
		{"rocev2-nfs3-longcall", "rocev2-nfs3-longcall.pcap", 55, 33, 23, 23, 2},
	} {
		t.Run(c.sample, func(t *testing.T) {
			j := New(Options{})
			read(t, j, c.sample+".trace.client", c.sample+".trace.server", c.sample+".mountstats")
			each(t, filepath.Join(sampleDir, c.file), j.Add)
			r := j.Result()
			n := r.Clients
			if n.Records != c.calls || n.Absent != c.absent || n.Joined != c.calls-c.absent || n.Several != c.several || n.Ambiguous != 0 || n.Unfinished != 0 {
				t.Errorf("client: %+v", n)
			}
			for _, a := range n.AbsentOf {
				if !strings.HasPrefix(a.Operation, "rpcbind") {
					t.Errorf("not in the capture: %+v", a)
				}
			}
			if n := r.Servers; n.Records != c.requests || n.Joined != c.requests2 || n.Absent != 0 {
				t.Errorf("server: %+v", n)
			}
			for _, o := range []*Order{r.ClientOrder, r.ServerOrder} {
				if o.Violations != 0 || o.Correlation == nil || *o.Correlation < 0.6 {
					t.Errorf("order %+v", o)
				}
			}
			for _, k := range r.Clocks {
				if !k.Known || k.Uncertainty <= 0 || k.Uncertainty > 1e6 {
					t.Errorf("clock %+v", k)
				}
			}
			if len(r.Mounts) != 1 || r.Mounts[0].Basis != "calls" || len(r.Mounts[0].Ops) == 0 {
				t.Fatalf("mounts %+v", r.Mounts)
			}
			for _, o := range r.Mounts[0].Ops {
				k, w := o.Kernel, o.Wire
				if k.Calls != w.Calls || k.Sent != w.Sent || k.SentBytes != w.SentBytes || k.RecvBytes != w.RecvBytes || *k.Errors != w.Errors {
					t.Errorf("%v: kernel %+v, wire %+v", o.Names, k, w)
				}
				// The kernel's milliseconds are cut off at every sum.
				if o.RTT+o.RTTExact < w.Mean {
					t.Errorf("%v: round trip %d, wire %d", o.Names, o.RTT, w.Mean)
				}
			}
			compareGolden(t, c.sample+".json", r)
		})
	}
}

func compareGolden(t *testing.T, name string, r *Result) {
	t.Helper()
	got, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update, if this is right)", golden)
	}
}

// TestMountstatsAlone compares without a trace: procedures that are the same
// COMPOUND stand together, and the capture holds what came after the file was
// read as well.
func TestMountstatsAlone(t *testing.T) {
	j := New(Options{})
	read(t, j, "rocev2-nfs41-recall.mountstats")
	each(t, filepath.Join(sampleDir, "rocev2-nfs41-recall.pcap"), j.Add)
	r := j.Result()
	if r.Clients != nil || r.Servers != nil || len(r.Mounts) != 1 {
		t.Fatalf("%+v", r)
	}
	m := r.Mounts[0]
	if m.Basis != "server" || m.Server != "192.0.2.1" || m.Version != "4.1" {
		t.Errorf("%+v", m)
	}
	byName := make(map[string]*MountOp)
	for _, o := range m.Ops {
		byName[strings.Join(o.Names, "+")] = o
	}
	for _, name := range []string{"READ", "OPEN", "CLOSE", "EXCHANGE_ID"} {
		o := byName[name]
		if o == nil || o.Kernel.Calls != o.Wire.Calls || o.Kernel.SentBytes != o.Wire.SentBytes || o.Kernel.RecvBytes != o.Wire.RecvBytes {
			t.Errorf("%s: %+v", name, o)
		}
	}
	var names []string
	for n := range byName {
		names = append(names, n)
	}
	if o := byName["FSINFO+GETATTR+PATHCONF+SERVER_CAPS"]; o == nil || o.Wire.Calls <= o.Kernel.Calls {
		t.Errorf("%+v of %q", o, names)
	}
}

// TestShared: two mounts of one client list the calls of the RPC client that they share, and those count once. Lines that are the same by chance, of
// other procedures, and lines that differ, are the mounts' own.
func TestShared(t *testing.T) {
	mount := func(point, lines string) string {
		return "device 192.0.2.1:/export mounted on " + point + " with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.1,proto=rdma\n" +
			"\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\txprt:\trdma 0 0 1 0 0 9 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\tper-op statistics\n" + lines + "\n"
	}
	j := New(Options{})
	text := mount("/a", "\t        CLOSE: 11 11 0 2660 2368 26 140 169 0\n\t  EXCHANGE_ID: 2 2 0 752 680 8 145 9 0\n\t       FSINFO: 1 1 0 252 268 0 4 4 0\n\t  DELEGRETURN: 3 3 0 744 720 17 280 300 0\n") +
		mount("/b", "\t        CLOSE: 11 11 0 2660 2368 26 140 169 0\n\t  EXCHANGE_ID: 2 2 0 752 680 8 145 9 0\n\t       FSINFO: 1 1 0 252 268 0 4 4 0\n\t  DELEGRETURN: 4 4 0 992 960 17 280 300 0\n")
	if err := j.ReadMountstats("m", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	each(t, filepath.Join(sampleDir, "rocev2-nfs41-recall.pcap"), j.Add)
	r := j.Result()
	if len(r.Mounts) != 1 || len(r.Mounts[0].Points) != 2 {
		t.Fatalf("%+v", r.Mounts)
	}
	want := map[string]uint64{"CLOSE": 11, "EXCHANGE_ID": 2, "FSINFO": 2, "DELEGRETURN": 7}
	for _, o := range r.Mounts[0].Ops {
		for _, name := range o.Names {
			if n, ok := want[name]; ok && len(o.Names) == 1 && o.Kernel.Calls != n {
				t.Errorf("%s: %d calls, not %d", name, o.Kernel.Calls, n)
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no lines of %v", want)
	}
}

// TestClocksApart: the clock of the client was set during the trace, or runs fast. What depends on one that was set has no values, the rest is as before;
// of one that runs fast all is known.
func TestClocksApart(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(sampleDir, "rocev2-nfs41-recall.trace.client"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	stamp := regexp.MustCompile(` (\d+)\.(\d{6}): `)
	join := func(ahead int, ppm float64) *Result {
		j := New(Options{})
		var trace strings.Builder
		for i, l := range lines {
			if m := stamp.FindStringSubmatchIndex(l); m != nil {
				at, _ := strconv.ParseFloat(l[m[2]:m[5]], 64)
				if at *= 1 + ppm/1e6; i > len(lines)/2 {
					at += float64(ahead)
				}
				l = fmt.Sprintf("%s%.6f%s", l[:m[2]], at, l[m[5]:])
			}
			trace.WriteString(l)
		}
		if err := j.ReadTrace("trace", strings.NewReader(trace.String())); err != nil {
			t.Fatal(err)
		}
		each(t, filepath.Join(sampleDir, "rocev2-nfs41-recall.pcap"), j.Add)
		return j.Result()
	}
	whole, apart, fast := join(0, 0), join(5, 0), join(0, 400)
	if c := fast.Clocks[0]; !c.usable() || c.Drift > -300 || c.Drift < -500 {
		t.Errorf("%+v", c)
	}
	if c := apart.Clocks[0]; !c.Known || c.Uncertainty >= 0 {
		t.Fatalf("%+v", c)
	}
	for i, o := range apart.Client {
		w := whole.Client[i]
		if o.SendSide != (Spread{}) || o.ReplySide != (Spread{}) {
			t.Errorf("%s: send side %+v, reply side %+v", o.Operation, o.SendSide, o.ReplySide)
		}
		if w.SendSide.Count != w.Calls || w.ReplySide.Count != w.Calls {
			t.Errorf("%s, clock not set: %d of %d", w.Operation, w.SendSide.Count, w.Calls)
		}
		if o.Outside != w.Outside || o.Calls != w.Calls {
			t.Errorf("%s: %+v, clock not set: %+v", o.Operation, o.Outside, w.Outside)
		}
	}
}

// TestNotListed: procedures without a line in the file, and transactions whose program the capture does not show.
func TestNotListed(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(sampleDir, "rocev2-nfs41-recall.mountstats"))
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile(`\s+(READ|GETATTR): .*`).ReplaceAllString(string(b), "")
	j := New(Options{})
	if err := j.ReadMountstats("mountstats", strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	n := 0
	each(t, filepath.Join(sampleDir, "rocev2-nfs41-recall.pcap"), func(v *rpc.View) {
		if n++; n <= 5 {
			tx := *v.Tx
			tx.Named = false
			var other rpc.View
			other.Set(&tx)
			j.Add(&other)
			return
		}
		j.Add(v)
	})
	m := j.Result().Mounts[0]
	if m.Unnamed != 5 || m.Reason != "" {
		t.Errorf("%d transactions without a program, %q", m.Unnamed, m.Reason)
	}
	got := make(map[string]string)
	for _, o := range m.Ops {
		if len(o.Unlisted) > 0 {
			got[strings.Join(o.Names, "+")] = strings.Join(o.Unlisted, "+")
		}
	}
	if len(got) != 1 || got["READ"] != "READ" {
		t.Errorf("%v", got)
	}
}

// truth is what a sample's kernels recorded, in the compact form.
type truth struct {
	Calls []struct {
		XID       string `json:"xid"`
		Client    string `json:"client"`
		Program   string `json:"program"`
		Version   uint32 `json:"version"`
		Procedure string `json:"proc"`
		Outside   string `json:"outside"`
		RTT       uint32 `json:"rtt_us"`
		Sends     []struct {
			By string `json:"by"`
		} `json:"sends"`
	} `json:"calls"`
}

// TestAllSamples joins every sample with the round trips that its client
// recorded. The compact truth has no times of events; the join does without.
func TestAllSamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sampleDir, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples (%v)", err)
	}
	pairs := 0
	for _, file := range files {
		base, _, _ := strings.Cut(filepath.Base(file), ".")
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(sampleDir, base+".truth.json"))
			if err != nil {
				t.Fatal(err)
			}
			var tr truth
			if err := json.Unmarshal(b, &tr); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			want := 0
			for i, c := range tr.Calls {
				if c.Procedure == "" || c.RTT == 0 {
					continue
				}
				want++
				fmt.Fprintf(&text, "x-1 [000] ..... %d.000000: rpc_stats_latency: task:%08x@%s xid=0x%s %sv%d %s backlog=1 rtt=%d execute=%d xprt_id=1\n",
					i+1, i, c.Client, strings.TrimPrefix(c.XID, "0x"), c.Program, c.Version, c.Procedure, c.RTT, c.RTT+2)
			}
			j := New(Options{})
			if err := j.ReadTrace("truth", strings.NewReader(text.String())); err != nil {
				t.Fatal(err)
			}
			each(t, file, j.Add)
			r := j.Result()
			if want == 0 {
				return
			}
			n, o := r.Clients, r.ClientOrder
			if n.Records != want || n.Ambiguous != 0 {
				t.Errorf("%d calls, %+v", want, n)
			}
			if !strings.Contains(base, "midstream") && n.Absent > 0 {
				t.Errorf("not in the capture: %+v", n.AbsentOf)
			}
			for _, v := range o.List {
				t.Error(v.String())
			}
			if o.Correlation == nil || *o.Correlation < 0.75 {
				t.Errorf("rank correlation %v of %d pairs", o.Correlation, o.Pairs)
			}
			pairs += o.Pairs
		})
	}
	if pairs < 2000 {
		t.Errorf("only %d pairs", pairs)
	}
}
