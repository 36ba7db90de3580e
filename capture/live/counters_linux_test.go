package live

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture/ftrace"
)

// Counters of drivers of Linux 6.12 below ports/1, by their names in sysfs: some of them each.
var driverCounters = map[string]string{
	"mlx5_0":   "counters/port_rcv_packets counters/port_xmit_wait hw_counters/lifespan hw_counters/local_ack_timeout_err hw_counters/out_of_sequence hw_counters/np_cnp_sent hw_counters/rnr_nak_retry_err",
	"rocep1s0": "counters/port_rcv_packets hw_counters/tcpRetransSegs hw_counters/cnpHandled hw_counters/RxECNMrkd hw_counters/ip4InPkts", // irdma
	"bnxt_re0": "hw_counters/to_retransmits hw_counters/seq_err_naks_rcvd hw_counters/rnr_naks_rcvd hw_counters/oos_drop_count hw_counters/rx_pkts",
	"rxe0":     "hw_counters/sent_pkts hw_counters/completer_retry_err hw_counters/rcvd_seq_err hw_counters/rcvd_rnr_err",
	"siw0":     "",
}

func TestCounters(t *testing.T) {
	sys := t.TempDir()
	set := func(device, file, value string) {
		name := filepath.Join(sys, "class/infiniband", device, "ports/1", file)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for device, files := range driverCounters {
		for file := range strings.FieldsSeq(files) {
			set(device, file, "100")
			n++
		}
	}
	set("mlx5_0", "counters/unreadable", "N/A (no PMA)")
	r := &eventReader{counters: counters(sys)}
	defer func() {
		for _, c := range r.counters {
			c.close()
		}
	}()
	if len(r.counters) != n-1 { // lifespan is none, nor what has no number
		t.Errorf("%d counters of %d", len(r.counters), n)
	}
	sample := func() (got []string) {
		r.sample()
		for _, e := range r.grown {
			var x ftrace.Event
			if !x.Decode(e.Append(nil)) || x.Kind != ftrace.Counter {
				t.Errorf("%+v", x)
			}
			got = append(got, fmt.Sprintf("%s %s %d", x.Program, x.Procedure, x.Grown))
		}
		r.grown = nil
		slices.Sort(got)
		return got
	}
	if got := sample(); got != nil {
		t.Errorf("at the start: %q", got)
	}
	set("mlx5_0", "hw_counters/local_ack_timeout_err", "314")
	set("rocep1s0", "hw_counters/cnpHandled", "101")
	set("bnxt_re0", "hw_counters/to_retransmits", "7") // it was reset
	set("rxe0", "hw_counters/rcvd_rnr_err", "100")
	if got, want := sample(), []string{"mlx5_0/1 local_ack_timeout_err 214", "rocep1s0/1 cnpHandled 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	set("bnxt_re0", "hw_counters/to_retransmits", "9")
	if got, want := sample(), []string{"bnxt_re0/1 to_retransmits 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestRPCCounter(t *testing.T) {
	name := filepath.Join(t.TempDir(), "nfsd")
	if err := os.WriteFile(name, []byte("rc 0 0 5\nfh 0 0 0 0 0\nnet 9 0 9 1\nrpc 17 0 0 0 0\nproc3 22 1 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newRPCCounter(name)
	defer c.close()
	if !c.known || c.first != 17 {
		t.Errorf("%+v", c)
	}
	if none := newRPCCounter(name + "x"); none.known {
		t.Errorf("%+v", none)
	}
}
