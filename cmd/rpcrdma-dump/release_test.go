package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/annotate"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestRelease: a packet is written ticks+1 ticks after it came at the latest, also if no other follows, and not
// before ticks of them.
func TestRelease(t *testing.T) {
	var out bytes.Buffer
	w := capture.NewWriter(&out, capture.WriterOptions{})
	a := annotate.New(w, 0)
	var opt decode.Options
	a.Options(&opt)
	r := release(a, &opt, time.Hour) // its own ticks never come
	defer r.end()
	d := decode.New(opt, func(*transaction.Transaction) {})
	in, err := capture.Open([]string{"../../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	r.tick() // the packets came before it
	for range ticks - 1 {
		if r.tick(); out.Len() > 0 {
			t.Fatal("written too early")
		}
	}
	if r.tick(); out.Len() == 0 {
		t.Fatal("not written")
	}
	n := out.Len()
	if st, err := a.Close(); err != nil || st.Packets != 281 || out.Len() != n {
		t.Errorf("%+v, %v: %d bytes were left", st, err, out.Len()-n)
	}
}
