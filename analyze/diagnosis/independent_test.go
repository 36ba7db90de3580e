package diagnosis_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
)

// TestIndependent has captures of another simulator, which shares no assumption with the one of test/why. The times are its own: what it took less
// without the cause, with the same random numbers.
func TestIndependent(t *testing.T) {
	const certain, likely, possible = diagnosis.Certain, diagnosis.Likely, diagnosis.Possible
	order := []diagnosis.Certainty{possible, likely, certain}
	for _, x := range []struct {
		file  string
		calls float64 // ms, as the application saw them, but for waits that the wire does not show
		code  diagnosis.Code
		side  diagnosis.Side
		sure  diagnosis.Certainty
		time  float64                                // ms; 0: any
		most  map[diagnosis.Code]diagnosis.Certainty // that these may be said with
	}{
		// It keeps one RDMA Read under way, though 16 were agreed; its own work is 20 ms.
		{"read_depth_s-0.client", 2727, diagnosis.ReadDepth, diagnosis.Server, likely, 2340, map[diagnosis.Code]diagnosis.Certainty{diagnosis.ServerTime: possible, diagnosis.PathDelay: possible}},
		// One thread waits for the round trip of each Read: more than its own waits for the distance.
		{"n_threads_dist-1.client", 1223, diagnosis.ServerThreads, diagnosis.Server, likely, 1022, map[diagnosis.Code]diagnosis.Certainty{diagnosis.PathDelay: likely}},
		// All that is behind a refused Send comes again: no copies of the capture.
		{"rnr_server.client", 673, diagnosis.ReceiverNotReady, diagnosis.Server, certain, 668, nil},
		{"rnr_client.client", 333, diagnosis.ReceiverNotReady, diagnosis.Client, certain, 329, nil},
		// A few answers come 1 ms late, and acknowledgements behind them; calls go on.
		{"n_rdlate-1.client", 30, diagnosis.ClientReadResponse, diagnosis.Client, likely, 12.5, map[diagnosis.Code]diagnosis.Certainty{diagnosis.PathStall: possible}},
		// It asks for 2 credits in each call, of 32 that are granted.
		{"credits_asked.client", 7.6, diagnosis.Credits, diagnosis.Client, likely, 2.86, nil},
		// 24 notifications of congestion, none of which cost anything: the disk is slow.
		{"v_cnp_slowdisk.server", 180, diagnosis.ServerTime, diagnosis.Server, certain, 173, nil},
		// READs of 4 KiB, four at a time, that a round trip of 400 µs spaces evenly: no link is full.
		{"v_delay_read4k.client", 45, diagnosis.PathDelay, diagnosis.Network, certain, 40, nil},
		// A link of 1 Gb/s behind the capture point is full: its queue delays acknowledgements, but nothing stands still.
		{"link1g-5.client", 58, diagnosis.LinkFull, diagnosis.Network, likely, 52, map[diagnosis.Code]diagnosis.Certainty{diagnosis.PathStall: possible}},
		// Two threads: each operation waits in line as long as others.
		{"threads2-7.client", 180, diagnosis.ServerTime, diagnosis.Server, possible, 0, nil},
		// Three callers share one credit.
		{"credits_zero-3.client", 12, diagnosis.Credits, diagnosis.Server, likely, 0, nil},
		// iWARP, cut to 96 bytes, which end before the grant: it is not one of 0.
		{"iwarp-snaplen96.switch", 6.2, "", "", possible, 0, nil},
		// iWARP, cut to 128 bytes, which hide the Reads: half of the distance is not seen, and losses took most.
		{"iwarp-tail-snaplen128.client", 1597, diagnosis.PathDelay, diagnosis.Network, likely, 0, nil},
		// iWARP, one call at a time over four connections in turn: acknowledgements wait for the next call, and no link is full.
		{"iwarp-4conn-depth1.server", 0, diagnosis.OneAtATime, diagnosis.Client, likely, 0, nil},
		// One reply of many that were lost had nothing behind it: it comes after the ACK timeout that was announced.
		{"p_loss-0.client", 174, diagnosis.LossRecovery, diagnosis.Network, likely, 144, map[diagnosis.Code]diagnosis.Certainty{diagnosis.ServerTime: possible}},
		// Queues of a path delay each packet by up to 1.5 ms. Adapters made of software would look the same.
		{"n_jitter-0.client", 751, diagnosis.PathDelay, diagnosis.Network, possible, 0, nil},
	} {
		f, err := os.Open(filepath.Join("testdata", x.file+".pcap.zst"))
		if err != nil {
			t.Fatal(err)
		}
		rep := diagnoseFile(t, f, x.file)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		off := func(got int64, want float64) float64 { return math.Abs(float64(got)/1e6/want - 1) }
		if x.calls > 0 && off(rep.Calls, x.calls) > 0.1 {
			t.Errorf("%s: calls took %.1f ms, not %.1f", x.file, float64(rep.Calls)/1e6, x.calls)
		}
		if x.code == "" && len(rep.Causes) == 0 {
			continue
		}
		if len(rep.Causes) == 0 {
			t.Errorf("%s: %s", x.file, rep.Summary)
			continue
		}
		if c := rep.Causes[0]; c.Code != x.code || c.Side != x.side || c.Certainty != x.sure || x.time > 0 && off(c.Time, x.time) > 0.2 {
			t.Errorf("%s: %s", x.file, c.Text)
		}
		for _, c := range rep.Causes {
			if n, ok := x.most[c.Code]; ok && slices.Index(order, c.Certainty) > slices.Index(order, n) {
				t.Errorf("%s: %s", x.file, c.Text)
			}
		}
	}
}
