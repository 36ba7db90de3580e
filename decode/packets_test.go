package decode

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// traced decodes a sample with the packets of its transactions.
func packetsOf(t *testing.T, name string, opt Options, emit func(*transaction.Transaction)) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := New(opt, emit).Run(r); err != nil {
		t.Fatal(err)
	}
}

// The packets of a transaction add up to what is known of it by other means.
func TestPacketsAddUp(t *testing.T) {
	for _, name := range sampled.Captures(t, "*") {
		sample := filepath.Base(name)
		n := 0
		packetsOf(t, name, Options{Transactions: transaction.Options{Packets: 1 << 20}}, func(tx *transaction.Transaction) {
			if tx.State != transaction.Complete {
				return
			}
			n++
			roce := tx.Connection.Fabric == rdma.RoCEv2
			var call, reply, pulled, pushed, again int
			var acked, first, last bool
			number := uint64(0)
			for i := range tx.Packets {
				p := &tx.Packets[i]
				if p.Ref.Number < number {
					t.Fatalf("%s: %08x: frame %d behind %d", sample, tx.XID, p.Ref.Number, number)
				}
				number = p.Ref.Number
				first = first || p.Ref == tx.First()
				last = last || p.Ref == tx.Reply.Last && p.Role == transaction.ReplyPart
				acked = acked || p.Ref == tx.Times.Ack && p.AcksReply
				if p.Operation > len(tx.Operations) {
					t.Fatalf("%s: %08x: operation %d of %d", sample, tx.XID, p.Operation, len(tx.Operations))
				}
				if p.Again {
					again++
					continue
				}
				want := tx.From.Other()
				switch p.Role {
				case transaction.CallPart:
					call += int(p.Bytes)
					want = tx.From
				case transaction.ReplyPart:
					reply += int(p.Bytes)
				case transaction.ReadResponse:
					pulled += int(p.Bytes)
					want = tx.From
				case transaction.WriteData:
					pushed += int(p.Bytes)
				case transaction.Ack, transaction.Nak, transaction.Congestion:
					continue
				}
				if p.From != want {
					t.Errorf("%s: %08x: frame %d, %s from the wrong side", sample, tx.XID, p.Ref.Number, p.Role)
				}
			}
			mark := 0
			if tx.Connection.Fabric == rdma.TCP {
				mark = 4 // record marks count as carried
			}
			// A packet that came before its message could be placed is listed with
			// its repetition: what was seen twice may count twice.
			twice := tx.Retransmits > 0
			if call != tx.Call.SendBytes+mark && !twice || reply != tx.Reply.SendBytes+mark && !twice {
				t.Errorf("%s: %08x: call %d of %d bytes, reply %d of %d", sample, tx.XID, call, tx.Call.SendBytes, reply, tx.Reply.SendBytes)
			}
			if uint64(pulled) != tx.ReadBytes && !twice || uint64(pushed) != tx.WriteBytes && !twice ||
				uint64(pulled) < tx.ReadBytes || uint64(pushed) < tx.WriteBytes {
				t.Errorf("%s: %08x: pulled %d of %d, pushed %d of %d", sample, tx.XID, pulled, tx.ReadBytes, pushed, tx.WriteBytes)
			}
			if roce && again != tx.Retransmits {
				t.Errorf("%s: %08x: %d packets again, %d counted", sample, tx.XID, again, tx.Retransmits)
			}
			if !first || !last && roce || !acked && tx.Times.Ack.Seen() {
				t.Errorf("%s: %08x: first %v, last %v, ack %v", sample, tx.XID, first, last, acked)
			}
		})
		if n == 0 && !strings.Contains(sample, "rping") {
			t.Errorf("%s: no complete transactions", sample)
		}
	}
}

// Where nothing is lost, each packet of a connection belongs to a transaction, except for setup and end.
func TestPacketsCovered(t *testing.T) {
	for sample, most := range map[string]int{
		"rocev2-nfs3-basic.pcap.zst":       0,
		"rocev2-nfs42-basic.pcap.zst":      0,
		"rocev2-nfs41-mixed-load.pcap.zst": 0,
		"rocev2-nfs41-recall.pcap":         0,
		"iwarp-nfs40-basic.pcap.zst":       16, // SYN, MPA, FIN, and acknowledgments that repeat others
		"iwarp-nfs3-crc.pcap.zst":          16,
	} {
		known := make(map[uint64]bool)
		left := make(map[uint64]bool)
		opt := Options{}
		opt.Transactions.Attribute = func(tx *transaction.Transaction, p *transaction.Packet) { known[p.Ref.Number] = true }
		opt.Observe(Observer{Packet: func(v *PacketView) {
			switch {
			case v.Connection == nil:
			case len(v.RoCE) > 0 && v.RoCE[0].DestQP > 1, len(v.RoCE) == 0 && v.Connection.Fabric == rdma.IWARP:
				left[v.Packet.Number] = true
			}
		}})
		packetsOf(t, filepath.Join("../samples", sample), opt, func(*transaction.Transaction) {})
		n := 0
		for f := range left {
			if !known[f] {
				n++
			}
		}
		if len(left) == 0 || n > most {
			t.Errorf("%s: %d of %d packets belong to no transaction", sample, n, len(left))
		}
	}
}

// What is told at once is what is listed at the end; the list is bounded, and
// a choice of XIDs is kept.
func TestAttribute(t *testing.T) {
	const sample = "../samples/rocev2-nfs3-basic.pcap.zst"
	type key struct{ serial, number uint64 }
	told := make(map[key]bool)
	opt := Options{}
	opt.Transactions.Packets = 1 << 20
	opt.Transactions.Attribute = func(tx *transaction.Transaction, p *transaction.Packet) {
		told[key{tx.Serial(), p.Ref.Number}] = true
	}
	listed, longest := 0, 0
	packetsOf(t, sample, opt, func(tx *transaction.Transaction) {
		last := uint64(0)
		longest = max(longest, len(tx.Packets))
		for i := range tx.Packets {
			n := tx.Packets[i].Ref.Number
			if !told[key{tx.Serial(), n}] {
				t.Errorf("%08x: frame %d is listed, not told", tx.XID, n)
			}
			if n != last {
				listed++
			}
			last = n
		}
	})
	if listed != len(told) || longest < 1000 {
		t.Errorf("%d packets listed, %d told, at most %d of one", listed, len(told), longest)
	}
	opt = Options{Transactions: transaction.Options{Packets: 10, TraceXID: func(xid uint32) bool { return xid&1 == 1 }}}
	lost := 0
	packetsOf(t, sample, opt, func(tx *transaction.Transaction) {
		if len(tx.Packets) > 10 || tx.XID&1 == 0 && len(tx.Packets)+tx.PacketsLost > 0 || tx.XID&1 == 1 && len(tx.Packets) == 0 {
			t.Errorf("%08x: %d packets", tx.XID, len(tx.Packets))
		}
		lost = max(lost, tx.PacketsLost)
	})
	if lost < 1000 {
		t.Errorf("at most %d packets not listed", lost)
	}
}
