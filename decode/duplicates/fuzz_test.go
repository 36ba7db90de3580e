package duplicates

import (
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// FuzzPrint: no frame has the print read beyond it, and a frame that is longer on the wire has the print of what was captured.
func FuzzPrint(f *testing.F) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs41-ipv6.pcap.zst"} {
		for _, p := range packets(f, name)[:40] {
			f.Add(uint16(p.Link), p.Data)
		}
	}
	f.Add(uint16(capture.LinkSLL2), []byte{8, 0})
	f.Fuzz(func(t *testing.T, link uint16, data []byte) {
		p := capture.Packet{Link: capture.LinkType(link), Data: data, Length: uint32(len(data))}
		var s printer
		x, ok := s.of(&p)
		p.Length += 1000
		if y, again := s.of(&p); y != x || again != ok {
			t.Errorf("%v %t, then %v %t", x, ok, y, again)
		}
	})
}
