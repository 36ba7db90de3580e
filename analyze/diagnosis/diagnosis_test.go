package diagnosis_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

// diagnose asks why a simulated capture is slow.
func diagnose(t *testing.T, run *simulate.Told, p simulate.Point) *diagnosis.Report {
	t.Helper()
	var b bytes.Buffer
	if err := run.WritePcap(&b, p); err != nil {
		t.Fatal(err)
	}
	return diagnoseFile(t, &b, p.String())
}

func diagnoseFile(t *testing.T, file io.Reader, name string) *diagnosis.Report {
	t.Helper()
	in, err := capture.NewReader(file, name, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := diagnosis.New(diagnosis.Options{File: name})
	opt := decode.Options{Observers: []decode.Observer{{Closed: r.Closed}}}
	r.Attach(&opt, 64<<20, nil)
	var v rpc.View
	d := decode.New(opt, func(tx *transaction.Transaction) { v.Set(tx); r.Transaction(&v) })
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	return r.Report()
}

// situations are runs of the simulator by their seeds.
var situations = map[string]uint64{
	"healthy": 5, "healthy, several clients": 5, "healthy, 16 calls at a time": 5,
	"path-delay": 5, "path-delay of one connection": 5, "tail loss": 1,
	"server-time": 5, "server-time, COMMIT": 5, "server-time, cold READs": 5, "server-time, Read-Read": 1, "server-threads": 5, "asked-to-wait": 5,
	"outage, server": 5, "outage, path": 5, "outage, server hangs": 5,
	"credits, none granted": 5, "client-read-response": 5, "client-read-response, iWARP": 5, "receiver-not-ready, iWARP": 1, "client-idle": 5, "one-at-a-time": 5, "capture-gaps": 5,
}

// TestSituations has runs of the simulator with one cause each, and healthy ones: at each capture point the cause comes first, on the
// right side, and nothing else is said to be certain or likely. The lane test/why judges the times over many runs.
func TestSituations(t *testing.T) {
	for name, seed := range situations {
		i := slices.IndexFunc(simulate.Situations(), func(s simulate.Situation) bool { return s.Name == name })
		if i < 0 {
			t.Errorf("there is no situation %q", name)
			continue
		}
		run := simulate.Tell(simulate.Situations()[i].Draw(seed))
		for p := range simulate.Point(simulate.Points) {
			if testing.Short() && (int(p)+int(seed))%simulate.Points != 0 {
				continue // one point of each situation
			}
			truth := run.Truth(p, 0, math.MaxInt64)
			rep := diagnose(t, run, p)
			if len(truth.Causes) == 0 {
				if !rep.Healthy() {
					t.Errorf("%s, %v: %s", name, p, rep.Summary)
				}
				continue
			}
			want := truth.Causes[0]
			for k, c := range rep.Causes {
				if c.Certainty == diagnosis.Possible && k > 0 {
					continue
				}
				if string(c.Code) != want.Code || !slices.Contains(want.Sides, string(c.Side)) {
					t.Errorf("%s, %v: cause %d is %s of the %s: %s", name, p, k+1, c.Code, c.Side, c.Text)
				}
			}
			if len(rep.Causes) == 0 {
				t.Errorf("%s, %v: nothing found", name, p)
			}
		}
	}
}

// TestUnseen has what no packet at the capture point shows by itself: calls that were lost before it, and the server's work on data that the
// client reads, whose acknowledgements wait behind the answers.
func TestUnseen(t *testing.T) {
	for name, p := range map[string]simulate.Point{"loss and client-idle": simulate.AtServer, "server-time, Read-Read": simulate.AtClient} {
		list := simulate.Situations()
		run := simulate.Tell(list[slices.IndexFunc(list, func(s simulate.Situation) bool { return s.Name == name })].Draw(1))
		c, truth := diagnose(t, run, p).Causes[0], run.Truth(p, 0, math.MaxInt64).Causes
		i := slices.IndexFunc(truth, func(x simulate.Cause) bool { return x.Code == string(c.Code) })
		if i < 0 || c.Certainty == diagnosis.Possible || math.Abs(float64(c.Time)/float64(truth[i].Gone.App)-1) > 0.2 {
			t.Errorf("%s, %v: %s, not %+v", name, p, c.Text, truth)
		}
	}
}

// TestKernel has what kernels measured themselves: it is certain.
func TestKernel(t *testing.T) {
	var client, server strings.Builder
	line := func(b *strings.Builder, thread, micros int, format string, args ...any) {
		fmt.Fprintf(b, "%d [000] %d.%06d: %s\n", thread, micros/1e6, micros%1e6, fmt.Sprintf(format, args...))
	}
	for i := range 96 {
		at := 1_000_000 + 1200*(i/2) + 5*(i%2)
		line(&server, 101+i%2, at, "svc_xprt_dequeue: server=192.0.2.1:20049 client=192.0.2.2:0 flags=0x9 wakeup-us=4000")
		line(&server, 101+i%2, at+10, "svcrdma_decode_rqst: cq.id=1 cid=%d xid=0x%08x vers=1 credits=64 proc=RDMA_MSG hdrlen=28", i, i+1)
		line(&server, 101+i%2, at+20, "svc_process: addr=192.0.2.2 xid=0x%08x service=nfsd vers=3 proc=GETATTR", i+1)
		line(&server, 101+i%2, at+1120, "svc_stats_latency: xid=0x%08x server=192.0.2.1:20049 client=192.0.2.2:0 proc=GETATTR execute-us=1100", i+1)

		task := fmt.Sprintf("task:%08x@00000001", i+1)
		line(&client, 7, at, "xprt_get_cong: %s snd_task:ffffffff cong=512 cwnd=512 (wait)", task)
		line(&client, 7, at+5000, "xprt_get_cong: %s snd_task:ffffffff cong=256 cwnd=512", task)
		line(&client, 7, at+5010, "xprtrdma_marshal: %s xid=0x%08x hdr=28 xdr=100/0/0 inline/inline", task, i+1)
		line(&client, 7, at+6010, "xprtrdma_reply: %s xid=0x%08x credits=2", task, i+1)
		line(&client, 7, at+6020, "rpc_stats_latency: %s xid=0x%08x nfsv3 GETATTR backlog=5000 rtt=1000 execute=6020", task, i+1)
	}
	for want, text := range map[diagnosis.Code]string{diagnosis.Credits: client.String(), diagnosis.ServerThreads: server.String()} {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[strings.Index(a, "] "):], b[strings.Index(b, "] "):]) })
		rep := diagnoseFile(t, strings.NewReader(strings.Join(lines, "\n")+"\n"), string(want))
		if len(rep.Causes) == 0 || rep.Causes[0].Code != want || rep.Causes[0].Certainty != diagnosis.Certain {
			t.Errorf("%s: %s %+v", want, rep.Summary, rep.Causes)
		}
	}
}
