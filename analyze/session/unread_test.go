package session

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// TestUnread cuts the packets of a client of NFSv4.1 to each length: none of its calls is one of NFSv4.0, and each COMPOUND is counted with its
// session or among those that could not be read.
func TestUnread(t *testing.T) {
	all := packetsOf(t, "../../samples/rocev2-nfs41-recall.pcap")
	compounds := map[int]bool{}
	for n := 90; n < 300; n += 2 {
		s := New(nil)
		read, unread := 0, 0
		v := rpc.View{Names: &rpc.Names{}}
		opt := decode.Options{Observers: []decode.Observer{s.Observer()}}
		opt.Transactions.Ended = s.Ended
		d := decode.New(opt, func(tx *transaction.Transaction) {
			v.Set(tx)
			switch minor, ok := v.MinorVersion(); {
			case tx.Backward || !v.Compound():
			case !ok:
				unread++
			case minor != 1:
				t.Errorf("cut to %d bytes, XID 0x%x: NFSv4.%d", n, tx.XID, minor)
			default:
				read++
			}
			v.Learn()
			s.Transaction(&v)
		})
		packets := slices.Clone(all)
		for i := range packets {
			p := &packets[i]
			p.Data = p.Data[:min(n, len(p.Data))]
		}
		traffic.Run(d, packets, 64)
		rep := s.Report(nil)
		for i := range rep.Clients {
			if c := &rep.Clients[i]; c.Version == "4.0" {
				t.Errorf("cut to %d bytes: %+v", n, c)
			}
		}
		if uint64(unread) > s.hidden || s.hidden > uint64(unread+read) {
			t.Errorf("cut to %d bytes: %d COMPOUNDs without a minor version, %d in all, %d of no session", n, unread, unread+read, s.hidden)
		}
		compounds[unread+read] = true
	}
	if len(compounds) < 2 { // those of which the RPC header is cut are none, and there are some
		t.Error(compounds)
	}
}
