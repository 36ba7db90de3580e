package text

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzText shows what can be decoded of changed captures in one of its forms,
// which how chooses. Nothing unprintable comes out.
func FuzzText(f *testing.F) {
	for i := range traffic.Count() {
		for how := range uint8(4) {
			f.Add(uint8(i), how, []byte{})
		}
	}
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := traffic.Apply(which, program)
		var out []byte
		list, tree := Lister{Width: int(how >> 2)}, Tree{Level: 1}
		var opt decode.Options
		switch how & 3 {
		case 1:
			tree.Level = 2
		case 2:
			tree = Tree{Level: 2, Hex: true}
			packets = packets[:min(len(packets), 20)]
		case 3:
			lister := PacketLister{}
			opt.Observe(decode.Observer{Packet: func(p *decode.PacketView) { out = lister.Append(out, p) }})
		}
		holds.Each(t, packets, opt, func(v *rpc.View) {
			if how&3 == 0 {
				out = append(list.Append(out, v), '\n')
				if list.Width >= LeastWidth {
					widths(t, out, list.Width)
				}
			}
			if how&3 != 3 {
				out = tree.Append(out, v)
			}
			check(t, out)
			out = out[:0]
		})
		check(t, out)
	})
}
