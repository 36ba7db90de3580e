package decode_test

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// dialogue makes the packets of a TCP connection from port 700 of 192.0.2.1 to port 2049 of 192.0.2.2.
type dialogue struct {
	packets []capture.Packet
	next    [2]uint32 // sequence numbers
}

// say appends a segment of a side, 1 ms after the last one.
func (d *dialogue) say(side int, payload []byte) *capture.Packet {
	seq := d.next[side]
	d.next[side] += uint32(len(payload))
	return d.segment(side, seq, 0x10, payload)
}

// segment appends a segment at any place of the stream.
func (d *dialogue) segment(side int, seq uint32, flags byte, payload []byte) *capture.Packet {
	ports := [2]uint16{700, 2049}
	b := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0}
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(40+len(payload)))
	b = append(b, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, byte(1+side), 192, 0, 2, byte(2-side))
	b = binary.BigEndian.AppendUint16(b, ports[side])
	b = binary.BigEndian.AppendUint16(b, ports[1-side])
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, d.next[1-side])
	b = append(b, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
	b = append(b, payload...)
	n := len(d.packets)
	d.packets = append(d.packets, capture.Packet{
		Number: uint64(n + 1), Time: 1e18 + int64(n)*1e6, Link: capture.LinkEthernet, Data: b, Length: uint32(len(b)),
	})
	return &d.packets[n]
}

// run decodes the packets.
func (d *dialogue) run(o decode.Options) (decode.Stats, []transaction.Transaction) {
	var list []transaction.Transaction
	dec := decode.New(o, func(tx *transaction.Transaction) { list = append(list, *tx) }) // of packets that stay as they are
	if err := dec.Run(&traffic.Reader{Packets: d.packets, Batch: 3}); err != nil {
		panic(err)
	}
	return dec.Stats(), list
}

// TestAlertInParts: an alert of TLS in plain text is told however TCP has cut it, also behind other records.
func TestAlertInParts(t *testing.T) {
	for _, before := range [][]byte{nil, {22, 3, 1, 0, 3, 21, 3, 3, 20, 3, 3, 0, 1, 1}} {
		alertInParts(t, before)
	}
}

func alertInParts(t *testing.T, before []byte) {
	alert := append(before, 21, 3, 3, 0, 2, 2, 40, 9, 9)
	for cut := 1; cut < len(alert); cut++ {
		var d dialogue
		d.say(0, oncrpc.AppendRecord(nil, (&oncrpc.Call{XID: 1, RPCVersion: oncrpc.Version, Program: 100003, Version: 3}).Append(nil)))
		d.say(1, oncrpc.AppendRecord(nil, (&oncrpc.Reply{XID: 1}).Append(nil)))
		d.say(1, alert[:cut])
		d.say(1, alert[cut:])
		st, _ := d.run(decode.Options{})
		first := uint64(3) // the packet with the description
		if cut <= len(before)+6 {
			first = 4
		}
		if want := (rdma.Given{Count: 1, First: first, Offset: 40}); st.TLSRefused != want {
			t.Errorf("cut behind %d bytes: %+v, want %+v", cut, st.TLSRefused, want)
		}
	}
}

// TestRecordsThatAreNone: what RPC over TCP has in place of a record is counted, with its packet; TLS on its own.
func TestRecordsThatAreNone(t *testing.T) {
	call := func(xid uint32) []byte {
		c := oncrpc.Call{XID: xid, RPCVersion: oncrpc.Version, Program: 100003, Version: 3}
		return oncrpc.AppendRecord(nil, c.Append(nil))
	}
	reply := func(xid uint32) []byte { return oncrpc.AppendRecord(nil, (&oncrpc.Reply{XID: xid}).Append(nil)) }
	var d dialogue
	d.say(0, call(1))
	d.say(1, reply(1))
	d.say(0, []byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4})
	d.say(0, call(2))
	d.say(1, reply(2))
	d.say(0, []byte{22, 3, 1, 0, 4, 9, 9, 9, 9})
	d.say(1, []byte{21, 3, 3, 0, 2, 2, 40, 9, 9})
	st, list := d.run(decode.Options{})
	if want := (rdma.Given{Count: 1, First: 7, Offset: 40}); st.TLSRefused != want {
		t.Errorf("%+v, want %+v", st.TLSRefused, want)
	}
	if want := (rdma.Given{Count: 1, Bytes: 8, First: 3, Offset: uint64(len(call(1)))}); st.Mismarked != want {
		t.Errorf("%+v, want %+v", st.Mismarked, want)
	}
	if s := st.Sealed; s.Count != 2 || s.Bytes != 18 || s.First != 6 {
		t.Errorf("%+v", s)
	}
	if grouped, _ := d.run(decode.Options{Trackers: 2}); grouped.Mismarked != st.Mismarked || grouped.Sealed != st.Sealed {
		t.Errorf("with trackers side by side %+v, %+v", grouped.Mismarked, grouped.Sealed)
	}
	if len(list) != 2 || list[0].State != transaction.Complete || list[1].State != transaction.Complete {
		t.Errorf("%d transactions", len(list))
	}
}

// TestOpenRecord ends a capture within a call: the call is there, and is cut.
func TestOpenRecord(t *testing.T) {
	c := oncrpc.Call{XID: 7, RPCVersion: oncrpc.Version, Program: 100003, Version: 3, Procedure: 7}
	msg := append(c.Append(nil), make([]byte, 2000)...)
	var d dialogue
	d.say(0, oncrpc.AppendRecord(nil, msg)[:1000])
	st, list := d.run(decode.Options{})
	if len(list) != 1 || list[0].XID != 7 || list[0].State != transaction.NoReply || list[0].Call.PayloadLength != len(msg) || len(list[0].Call.Payload) != 996 {
		t.Errorf("%+v", list)
	}
	if st.Mismarked.Count != 0 {
		t.Errorf("%+v", st.Mismarked)
	}
}

// TestFragments has datagrams of which a fragment is missing, or has come with other bytes.
func TestFragments(t *testing.T) {
	c := oncrpc.Call{RPCVersion: oncrpc.Version, Program: 100003, Version: 3}
	msg := append(c.Append(nil), make([]byte, 400)...)
	var d dialogue
	fragment := func(id byte, from, to int, other bool) {
		udp := append([]byte{3, 0x84, 8, 1, 0, 0, 0, 0}, msg...)
		binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
		udp[11] = id // of the XID
		if other {
			udp[to-1] ^= 1
		}
		b := d.segment(0, 0, 0, udp[from:to]).Data
		ip := b[14:]
		ip[5], ip[9] = id, 17
		flags := uint16(from / 8)
		if to < len(udp) {
			flags |= 0x2000
		}
		binary.BigEndian.PutUint16(ip[6:], flags)
		b = append(b[:34], b[54:]...) // no header of TCP
		binary.BigEndian.PutUint16(ip[2:], uint16(len(b)-14))
		p := &d.packets[len(d.packets)-1]
		p.Data, p.Length = b, uint32(len(b))
	}
	n := len(msg) + 8
	fragment(1, 0, 240, false)
	fragment(1, 240, n, false)
	fragment(2, 0, 240, false)
	fragment(3, 240, n, false)
	fragment(4, 0, 240, false)
	fragment(4, 0, 240, true)
	fragment(4, 240, n, false)
	for _, trackers := range []int{0, 2} {
		st, list := d.run(decode.Options{Trackers: trackers})
		if st.IncompleteDatagrams != 2 || st.OddFragments != 1 || len(list) != 2 {
			t.Errorf("%d trackers: %d incomplete, %d odd, %d transactions", trackers, st.IncompleteDatagrams, st.OddFragments, len(list))
		}
	}
}
