package bench

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// BenchmarkFramed has the same small packets in frames of several kinds, and in tunnels: mirrors and captures of all interfaces.
func BenchmarkFramed(b *testing.B) {
	data := repeatedBy(b, smallSample, 40, 1)
	b.Run("ethernet", func(b *testing.B) { benchFramed(b, data) })
	for _, f := range []struct {
		name string
		link capture.LinkType
		of   func(p []byte) []byte // of an Ethernet frame
	}{
		{"vlan", capture.LinkEthernet, func(p []byte) []byte { return slices.Concat(p[:12], []byte{0x81, 0, 0, 7}, p[12:]) }},
		{"two tags", capture.LinkEthernet, func(p []byte) []byte { return slices.Concat(p[:12], []byte{0x88, 0xa8, 0, 7, 0x81, 0, 0, 8}, p[12:]) }},
		{"any", capture.LinkSLL2, func(p []byte) []byte { return slices.Concat(p[12:14], make([]byte, 18), p[14:]) }},
		{"raw", capture.LinkRaw, func(p []byte) []byte { return p[14:] }},
	} {
		b.Run(f.name, func(b *testing.B) {
			benchFramed(b, rewritten(b, data, func(p *capture.Packet) {
				n := len(p.Data)
				p.Data, p.Link = f.of(p.Data), f.link
				p.Length = uint32(int(p.Length) + len(p.Data) - n)
			}))
		})
	}
	for _, k := range wrap.Kinds(5) {
		if !slices.Contains([]string{"vxlan", "geneve", "erspan2", "erspan3", "gre-ip", "mpls"}, k.Name) {
			continue
		}
		b.Run(k.Name, func(b *testing.B) {
			w := wrap.New(k, 5)
			benchFramed(b, rewritten(b, data, func(p *capture.Packet) {
				frame, n := w.Frame(p.Data, int(p.Length))
				p.Data, p.Length, p.Link = frame, uint32(n), k.Link
			}))
		})
	}
}

func benchFramed(b *testing.B, data []byte) {
	measure(b, len(data), func() uint64 { return pipeline(b, data, transactions, false).Packets })
}

// rewritten changes each packet of a capture.
func rewritten(b *testing.B, data []byte, change func(p *capture.Packet)) []byte {
	b.Helper()
	r, err := capture.NewReader(bytes.NewReader(data), "memory", capture.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return pcap(b, r, change)
}
