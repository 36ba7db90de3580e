package transaction_test

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/rocetest"
)

func dump(records []rocetest.Record, from, to int, conn int, side int) {
	for i := from; i < to && i < len(records); i++ {
		r := &records[i]
		if r.Link.Index != conn || side >= 0 && int(r.Packet.From) != side { continue }
		x := uint32(0)
		if r.Tx != nil { x = r.Tx.XID }
		s := ""
		if r.Opcode == roce.RCAcknowledge { s = r.AETH.Syndrome.String() }
		fmt.Printf("%4d %8d side %d %-24v psn %06x xid %x va %x len %d dma %d resent %v %s\n", i+1, r.Time-records[0].Time, r.Packet.From, r.Opcode, r.PSN, x, r.RETH.VA, r.PayloadLen, r.RETH.DMALen, r.Resent, s)
	}
}

func TestZZ(t *testing.T) {
	for s := uint64(1); s < 101; s++ {
		c := rocetest.Config{MTU: 256, Inline: 2000, Segment: 1000, Transfer: 700, Seed: s}
		c.Loss = rocetest.Loss{Near: 0.02, Middle: 0.02, Far: 0.02, AckLost: 0.05, NotNow: 0.05, Copied: 0.02, Late: 0.02}
		tr := rocetest.Make(c)
		left := tr.Taps[0]
		seen := map[uint32]*result{}
		for _, x := range track(left, keepData, roce.Limits{}) {
			if o := seen[x.xid]; o != nil && !t.Failed() { fmt.Println(s, o); fmt.Println(x); dump(left, int(o.call.first.Number)-4, int(x.call.last.Number)+10, 0, -1); t.Fail() }
			seen[x.xid] = x
		}
	}
}
