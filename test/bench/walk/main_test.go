package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var b strings.Builder
	if err := run(&b, []string{"../../../samples/rocev2-rping.pcap"}); err != nil {
		t.Fatal(err)
	}
	// 47 packets, of which four are ARP.
	f := strings.Fields(b.String())
	if len(f) != 5 || f[0] != "47" || f[3] != "0" || f[2] == "0" {
		t.Errorf("printed %q", b.String())
	}
}
