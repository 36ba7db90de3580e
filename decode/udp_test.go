package decode_test

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// datagram appends an RPC message over UDP, 1 ms after the last packet. length is what its UDP header says, tail what the IP packet has
// behind it.
func (d *dialogue) datagram(side int, msg []byte, length, tail int) {
	ports := [2]uint16{700, 2049}
	udp := binary.BigEndian.AppendUint16(nil, ports[side])
	udp = binary.BigEndian.AppendUint16(udp, ports[1-side])
	udp = binary.BigEndian.AppendUint16(udp, uint16(length))
	udp = append(append(append(udp, 0, 0), msg...), make([]byte, tail)...)
	b := d.segment(side, 0, 0, udp).Data
	b[14+9] = 17
	b = append(b[:34], b[54:]...) // no header of TCP
	binary.BigEndian.PutUint16(b[14+2:], uint16(len(b)-14))
	p := &d.packets[len(d.packets)-1]
	p.Data, p.Length = b, uint32(len(b))
}

// TestUDPLength: a UDP length that the IP packet contradicts is noted in the transaction, which is decoded as before.
func TestUDPLength(t *testing.T) {
	call := (&oncrpc.Call{XID: 1, RPCVersion: oncrpc.Version, Program: 100003, Version: 3}).Append(nil)
	reply := (&oncrpc.Reply{XID: 1}).Append(nil)
	for _, c := range []struct {
		name        string
		call, reply int // what the UDP headers say, more than is there
		tail        int
		want        []uint64
	}{
		{"right", 0, 0, 0, nil},
		{"options behind it", 0, 0, 16, nil},
		{"the call's too large", 1, 0, 0, []uint64{uint64(len(call)) + 9}},
		{"the reply's too large", 0, 1000, 0, []uint64{uint64(len(reply)) + 1008}},
		{"both", 1, 1, 0, []uint64{uint64(len(call)) + 9, uint64(len(reply)) + 9}},
		{"shorter than its header", -len(call) - 1, 0, 0, []uint64{7}},
		{"nothing", -len(call) - 8, 0, 0, []uint64{0}},
	} {
		var d dialogue
		d.datagram(0, call, len(call)+8+c.call, c.tail)
		d.datagram(1, reply, len(reply)+8+c.reply, c.tail)
		var got []uint64
		n := 0
		decodedWith(d.packets, decode.Options{}, func(tx *transaction.Transaction) {
			if n++; n > 1 || tx.State != transaction.Complete || tx.Call.PayloadLength != len(call) || tx.Reply.PayloadLength != len(reply) {
				t.Errorf("%s: %v, %d and %d bytes", c.name, tx.State, tx.Call.PayloadLength, tx.Reply.PayloadLength)
			}
			for _, n := range tx.Notes {
				if n.Kind == transaction.UDPLength {
					got = append(got, n.N)
				}
			}
		})
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] || len(got) > 1 && got[1] != c.want[1] {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestUDPUnpadded: a reply that lacks the padding of its last item is the reply, if its call was seen.
func TestUDPUnpadded(t *testing.T) {
	call := (&oncrpc.Call{XID: 1, RPCVersion: oncrpc.Version, Program: 100003, Version: 3}).Append(nil)
	for _, xid := range []uint32{1, 2} {
		reply := append((&oncrpc.Reply{XID: xid}).Append(nil), "hi"...)
		var d dialogue
		d.datagram(0, call, len(call)+8, 0)
		d.datagram(1, reply, len(reply)+8, 0)
		want := transaction.Complete
		if xid != 1 {
			want = transaction.NoReply
		}
		decodedWith(d.packets, decode.Options{}, func(tx *transaction.Transaction) {
			if tx.XID != 1 || tx.State != want {
				t.Errorf("reply %d: %v of XID %d", xid, tx.State, tx.XID)
			}
		})
	}
}
