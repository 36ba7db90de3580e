package latency

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TroubleKind is something that may have delayed transactions.
type TroubleKind uint8

// Kinds of trouble. All but the last three are rdma.Events.
const (
	Retransmit    TroubleKind = iota // packets of the transaction were retransmitted
	NAKSequence                      // PSN sequence error
	NAKOther                         // invalid request, remote access or remote operational error
	RNR                              // receiver not ready
	CNP                              // congestion notification
	ECN                              // packet marked "congestion experienced"
	Gap                              // packets missing from the capture
	Terminated                       // iWARP Terminate
	Reconnect                        // the call was retransmitted on another connection
	RepeatedCall                     // the call was retransmitted with the same XID
	RepeatedReply                    // the reply was retransmitted
	numTroubles
)

var troubleNames = [numTroubles]string{
	"retransmit", "nak_sequence", "nak_other", "rnr", "cnp", "ecn", "gap", "terminate",
	"reconnect", "call_again", "reply_again",
}

func (k TroubleKind) String() string { return troubleNames[k] }

// troubleOf is the kind of an event.
func troubleOf(e rdma.Event) (TroubleKind, bool) {
	switch e {
	case rdma.EventRetransmit:
		return Retransmit, true
	case rdma.EventNAKSequence:
		return NAKSequence, true
	case rdma.EventNAKInvalid, rdma.EventNAKAccess, rdma.EventNAKOperation, rdma.EventNAKOther:
		return NAKOther, true
	case rdma.EventRNR:
		return RNR, true
	case rdma.EventTerminate:
		return Terminated, true
	case rdma.EventGap:
		return Gap, true
	case rdma.EventCNP:
		return CNP, true
	case rdma.EventECN:
		return ECN, true
	}
	return 0, false
}

// troublesOf returns the kinds that affected a transaction.
func troublesOf(tx *transaction.Transaction) (set uint16) {
	if len(tx.Troubles) == 0 && len(tx.Notes) == 0 && tx.Retransmits == 0 {
		return 0
	}
	if tx.Retransmits > 0 {
		set |= 1 << Retransmit
	}
	for i := range tx.Troubles {
		if k, ok := troubleOf(tx.Troubles[i].Kind); ok {
			set |= 1 << k
		}
	}
	for _, n := range tx.Notes {
		switch n.Kind {
		case transaction.ResentOn, transaction.ResentFrom:
			set |= 1 << Reconnect
		case transaction.CallRepeated, transaction.SecuredAgain, transaction.SecuredCopy:
			set |= 1 << RepeatedCall
		case transaction.ReplyRepeated:
			set |= 1 << RepeatedReply
		}
	}
	return set
}

// touched summarises the transactions of one group that a kind of trouble affected.
type touched struct {
	count uint64 // with a latency
	sum   float64
}

// trouble is one kind over all groups.
type trouble struct {
	transactions uint64
	packets      uint64 // retransmitted packets, for Retransmit
	unfinished   uint64 // transactions without a latency
	xids         []TroubleXID
}

// TroubleXID names a transaction.
type TroubleXID struct {
	XID        uint32 `json:"xid"`
	XIDHex     string `json:"xid_hex"`
	Connection int    `json:"connection"`
	Frame      uint64 `json:"frame"` // first packet

	time int64 // of it
}

// addTrouble records the troubles of a transaction; total is negative if it has no latency.
func (r *Recorder) addTrouble(g *group, tx *transaction.Transaction, set uint16, total int64) {
	if g.touched == nil {
		g.touched = new([numTroubles]touched)
	}
	for k := range TroubleKind(numTroubles) {
		if set&(1<<k) == 0 {
			continue
		}
		t := &r.troubles[k]
		t.transactions++
		if len(t.xids) < maxXIDs {
			t.xids = append(t.xids, TroubleXID{XID: tx.XID, Connection: tx.Connection.ID, Frame: tx.First().Number, time: tx.First().Time})
		}
		if total < 0 {
			t.unfinished++
			continue
		}
		g.touched[k].count++
		g.touched[k].sum += float64(total)
	}
	r.troubles[Retransmit].packets += uint64(tx.Retransmits)
	if tx.TroublesLost > 0 {
		r.unlisted++
	}
	for i := range tx.Troubles {
		if x := &tx.Troubles[i]; x.Own {
			if k, ok := troubleOf(x.Kind); ok {
				r.again.add(x.Ref.Time, k)
			}
		}
	}
	for _, k := range [...]TroubleKind{Reconnect, RepeatedCall, RepeatedReply} {
		if set&(1<<k) != 0 {
			r.again.add(tx.First().Time, k)
		}
	}
}
