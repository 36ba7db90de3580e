package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestHeaders(t *testing.T) {
	for name, want := range map[string]struct {
		lines int
		first string
	}{
		"iwarp-nfs41-recall":   {100, "05:53:49.818839 192.0.2.2->192.0.2.1 xid 0x6d742ac9 RDMA_MSG credits 128 chunks 0; 0; 0"},
		"rocev2-nfs41-recall":  {100, "05:49:36.855329 192.0.2.2->192.0.2.1 xid 0x97466d78 RDMA_MSG credits 128 chunks 0; 0; 0"},
		"rocev2-nfs3-longcall": {46, "05:50:11.846061 192.0.2.2->192.0.2.1 xid 0x666617bc RDMA_MSG credits 128 chunks 0; 0; 0"},
		"rocev2-rping":         {0, ""},
	} {
		var b bytes.Buffer
		if err := headers(&b, "../../samples/"+name+".pcap"); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		if len(lines)-1 != want.lines || lines[0] != want.first {
			t.Errorf("%s: %d lines, the first\n%s", name, len(lines)-1, lines[0])
		}
	}
}
