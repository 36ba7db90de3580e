package text

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/mutate/traffic"
)

// FuzzText shows what can be decoded of changed captures in one of its forms,
// which how chooses. Nothing unprintable comes out.
func FuzzText(f *testing.F) {
	for i := range traffic.Count() {
		for how := range uint8(4) {
			f.Add(uint8(i), how, []byte{})
		}
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := traffic.Apply(which, program)
		memory.Start()
		var out []byte
		list, tree := Lister{}, Tree{Level: 1}
		var opt decode.Options
		switch how & 3 {
		case 1:
			tree.Level = 2
		case 2:
			tree = Tree{Level: 2, Hex: true}
			packets = packets[:min(len(packets), 20)]
		case 3:
			lister := PacketLister{}
			opt.Packet = func(p *decode.PacketView) { out = lister.Append(out, p) }
		}
		v := rpc.View{Names: &rpc.Names{}}
		d := decode.New(opt, func(tx *transaction.Transaction) {
			holds.Transaction(t, tx)
			v.Set(tx)
			if how&3 == 0 {
				out = append(list.Append(out, &v), '\n')
			}
			if how&3 != 3 {
				out = tree.Append(out, &v)
			}
			v.Learn()
			check(t, out)
			out = out[:0]
		})
		traffic.Run(d, packets, 16)
		check(t, out)
		memory.End(t)
	})
}
