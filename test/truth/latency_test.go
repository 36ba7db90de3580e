package truth_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/truth"
)

func report(t *testing.T, file string, by ...latency.Key) *latency.Report {
	t.Helper()
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := latency.New(latency.Options{By: by, Inline: latency.DefaultInline})
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Concurrent: true, Observers: []decode.Observer{r.Observer()}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		r.Add(&v)
		v.Learn()
	})
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	st := d.Stats()
	return r.Report(latency.Source{Packets: st.Packets, First: st.First, Last: st.Last})
}

// characteristic maps the client's names of COMPOUNDs (fs/nfs/nfs4xdr.c) to
// the operation that a report groups them by, where the two differ.
var characteristic = map[string]string{
	"OPEN_NOATTR": "OPEN", "SETACL": "SETATTR", "SYMLINK": "CREATE",
	"FSINFO": "GETATTR", "PATHCONF": "GETATTR", "STATFS": "GETATTR", "SERVER_CAPS": "GETATTR", "GETACL": "GETATTR",
	"LOOKUP_ROOT": "GETATTR", "GET_LEASE_TIME": "GETATTR",
}

func operation(version uint32, procedure string) string {
	if op, ok := characteristic[procedure]; ok && version == 4 {
		return op
	}
	return procedure
}

// sums is what the kernel counted for one operation.
type sums struct {
	calls  uint64        // on the wire
	rtt    time.Duration // as the client measured it
	simple bool          // each call was sent once, and has a time
}

func TestKernel(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples (%v)", err)
	}
	compared, timed := 0, 0
	for _, file := range files {
		name, rest, _ := strings.Cut(filepath.Base(file), ".")
		kernel, err := truth.Load(filepath.Join(samples, name+".truth.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(kernel.Calls) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			rep := report(t, file)
			got := make(map[string]*latency.Group)
			for _, g := range rep.Groups {
				program, op, _ := strings.Cut(g.Key[0], " ")
				program, _, _ = strings.Cut(program, ".") // nfs4.1
				k := program + " " + op
				if got[k] == nil {
					got[k] = g
					continue
				}
				// Two minor versions: EXCHANGE_ID and NULL are not in both.
				sum := *got[k]
				l := *sum.Latency
				sum.Count += g.Count
				l.Count += g.Latency.Count
				l.Sum += g.Latency.Sum
				sum.Latency = &l
				got[k] = &sum
			}
			want := make(map[string]*sums)
			beyond := make(map[string]uint64) // calls that mountstats does not count
			for _, c := range kernel.Calls {
				k := c.Program + string(rune('0'+c.Version)) + " " + operation(c.Version, c.Procedure)
				s := want[k]
				if s == nil {
					s = &sums{simple: true}
					want[k] = s
				}
				if c.Outside == truth.OutsideBoth {
					beyond[k]--
					s.simple = false
				}
				for _, x := range c.Sends {
					if c.Outside != truth.OutsideBoth && (x.Decoded() || x.Answered()) {
						s.calls++
					}
				}
				s.rtt += time.Duration(c.RTT) * time.Microsecond
				s.simple = s.simple && len(c.Sends) == 1 && c.RTT > 0
				for _, m := range kernel.Mounts {
					in := slices.Contains(m.Clients, c.Client) && c.Program == m.Program && c.Version == m.Version
					if !in || c.Sends[0].Seq == 0 || c.Sends[0].Seq > m.Cut {
						for _, x := range c.Sends {
							if x.Decoded() || x.Answered() {
								beyond[k]++
							}
						}
					}
				}
			}
			for k, s := range want {
				g := got[k]
				if s.calls == 0 {
					continue
				}
				if g == nil {
					t.Errorf("%s: the client sent %d, the report has none", k, s.calls)
					continue
				}
				compared++
				if g.Count != s.calls {
					t.Errorf("%s: %d in the report, the client sent %d", k, g.Count, s.calls)
				}
				if !s.simple || g.Latency.Count != s.calls || rest == "both.pcapng.zst" {
					continue
				}
				// The client's clock runs from before the Send is on the wire
				// to after the reply was taken from it; the capture was taken
				// in the server, so that the way there and back is not in the
				// capture's time. It counts in microseconds, rounded down.
				timed++
				if sum := time.Duration(g.Latency.Sum); sum > s.rtt+time.Duration(s.calls)*time.Microsecond {
					t.Errorf("%s: %d calls took %v in the report, %v for the client", k, s.calls, sum, s.rtt)
				}
			}
			// mountstats itself, not by way of the trace.
			if len(kernel.Mounts) != 1 || len(kernel.Mounts[0].Clients) == 0 {
				t.Errorf("%d mounts", len(kernel.Mounts))
				return
			}
			m := kernel.Mounts[0]
			counted := make(map[string]uint64)
			for procedure, o := range m.Ops {
				counted[m.Program+string(rune('0'+m.Version))+" "+operation(m.Version, procedure)] += o.Trans
			}
			for k, n := range counted {
				count := uint64(0)
				if got[k] != nil {
					count = got[k].Count
				}
				if count != n+beyond[k] {
					t.Errorf("%s: %d in the report, mountstats has %d and %d are not its", k, count, n, beyond[k])
				}
			}
		})
	}
	t.Logf("%d operations compared, the times of %d", compared, timed)
	if compared < 200 || timed < 150 {
		t.Errorf("only %d operations compared, the times of %d", compared, timed)
	}
}
