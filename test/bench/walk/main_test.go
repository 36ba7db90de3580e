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
	const want = "47 4790 41 0 6\n" // six packets are not RoCE
	if b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
}
