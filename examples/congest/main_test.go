package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// TestCongest compares the copy with the original: a tenth of the data packets differs, in the
// bits of ECN and the checksum, which is right.
func TestCongest(t *testing.T) {
	const in = "../../samples/rocev2-nfs41-recall.pcap"
	var out bytes.Buffer
	marked, err := congest(&out, in)
	if err != nil {
		t.Fatal(err)
	}
	before, after := frames(t, in, nil), frames(t, "-", &out)
	if len(before) != len(after) {
		t.Fatalf("%d packets, not %d", len(after), len(before))
	}
	data, differ := 0, 0
	for i, a := range after {
		b := before[i]
		if carriesData(b) {
			data++
		}
		if bytes.Equal(a, b) {
			continue
		}
		differ++
		if a[15] != b[15]|3 {
			t.Errorf("packet %d: type of service %#x, not %#x", i+1, a[15], b[15]|3)
		}
		copy(b[15:16], a[15:16])
		copy(b[24:26], a[24:26])
		if !bytes.Equal(a, b) {
			t.Errorf("packet %d: more than ECN and checksum has changed", i+1)
		}
		var sum uint32
		for j := 14; j < 34; j += 2 {
			sum += uint32(a[j])<<8 | uint32(a[j+1])
		}
		if sum = sum&0xffff + sum>>16; sum != 0xffff {
			t.Errorf("packet %d: checksum %#x", i+1, sum)
		}
	}
	if marked == 0 || differ != marked || marked != data/10 {
		t.Errorf("%d packets marked, %d differ, %d have data", marked, differ, data)
	}
}

func frames(t *testing.T, name string, stdin io.Reader) (out [][]byte) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{Stdin: stdin})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for p, err := range capture.Packets(r) {
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(p.Data))
	}
	return out
}
