package ftrace

import (
	"os"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line, name string
		time       int64
		fields     int
	}{
		{"    kworker/u4:1-29      [000] .N...    23.640612: rpc_stats_latency: task:1@1 xid=0x9957550c", "rpc_stats_latency", 23640612000, 2},
		{"            nfsd-225   [000]    24.048435: svcrdma_decode_rqst:  cq.id=2 cid=143", "svcrdma_decode_rqst", 24048435000, 2},
		{"nfsd   225 [001]   24.048435123: rpcrdma:svcrdma_decode_rqst: cq.id=2 cid=143", "svcrdma_decode_rqst", 24048435123, 2},
		{" a [b] c: [1] -9 [012] ..... 1.5: x: ", "x", 1500000000, 0},
		{" short [000] .....", "", 0, 0},
		{" [000] ..... time: x: y", "", 0, 0},
		{" [abc] ..... 1.0: x: y", "", 0, 0},
		{" [0] ..... 99999999999999999999.0: x: y", "", 0, 0},
		{" [0] ..... 9999999999.0: x: y", "", 0, 0},
		{" [0] ..... 1.0: : y", "", 0, 0},
		{" [0] ..... 1.1234567890: x: y", "", 0, 0},
		{"", "", 0, 0},
	} {
		e, ok := Parse(c.line)
		if ok != (c.name != "") || e.Name != c.name || len(e.Fields) != c.fields || e.Time != c.time {
			t.Errorf("%q: %v %+v", c.line, ok, e)
		}
	}
}

func TestValues(t *testing.T) {
	e, _ := Parse("x-1 [000] ..... 1.0: y: xid=0x9957550c rtt=12 server=192.0.2.1:20049 big=0x1ffffffff task:00000001@00000004 empty=")
	if x, ok := e.XID(); !ok || x != 0x9957550c {
		t.Errorf("xid %x %v", x, ok)
	}
	if n, ok := e.Number("rtt", 64); !ok || n != 12 {
		t.Errorf("rtt %d %v", n, ok)
	}
	if _, ok := e.Number("big", 32); ok {
		t.Error("a number of 33 bits")
	}
	if e.Value("task") != "00000001@00000004" || e.Value("server") != "192.0.2.1:20049" || e.Value("none") != "" || e.Value("empty") != "" {
		t.Error("values")
	}
}

func TestScan(t *testing.T) {
	text := "# tracer: nop\n# entries-in-buffer/entries-written: 18/19   #P:1\n\r\n" +
		"x-1 [000] ..... 1.0: y: a=1\nnonsense\n" + strings.Repeat("z", 3*MaxLine) + "\nCPU:0 [LOST 17 EVENTS]\nx-1 [000] ..... 2.0: y: a=2\nx-1 [000] ..... 3.0: y: a=3"
	n := 0
	s, err := Scan(strings.NewReader(text), func(e Event) { n++ })
	if err != nil || n != 2 || s != (Stats{Events: 2, Other: 2, Long: 1, Lost: 18}) {
		t.Errorf("%d events, %+v, %v", n, s, err)
	}
}

func FuzzScan(f *testing.F) {
	for _, name := range []string{"../../../samples/rocev2-nfs41-recall.trace.client", "../../../samples/rocev2-nfs3-longcall.trace.server"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b[:4096]))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n uint64
		s, err := Scan(strings.NewReader(text), func(e Event) {
			n++
			if e.Name == "" || e.Time < 0 {
				t.Errorf("event %+v", e)
			}
			e.XID()
		})
		if err != nil || n != s.Events {
			t.Errorf("%d events, %+v, %v", n, s, err)
		}
	})
}
