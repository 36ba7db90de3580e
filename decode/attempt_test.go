package decode_test

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestAttempts: SYNs that are refused, or never answered, are counted, if they are for a service of RPC.
func TestAttempts(t *testing.T) {
	const syn, rst, ack = 0x02, 0x04, 0x10
	call := oncrpc.AppendRecord(nil, (&oncrpc.Call{XID: 1, RPCVersion: oncrpc.Version, Program: 100003, Version: 3}).Append(nil))
	for _, c := range []struct {
		name       string
		talk       func(d *dialogue)
		refused    rdma.Given
		unanswered decode.Asked
	}{
		{"refused", func(d *dialogue) {
			d.segment(0, 100, syn, nil)
			d.segment(1, 0, rst|ack, nil)
		}, rdma.Given{Count: 1, First: 1}, decode.Asked{}},
		{"refused three times, from the same port", func(d *dialogue) {
			for i := range uint32(3) {
				d.segment(0, 100+i*1e6, syn, nil)
				d.segment(1, 0, rst|ack, nil)
			}
		}, rdma.Given{Count: 3, First: 1}, decode.Asked{}},
		{"no answer, sent three times", func(d *dialogue) {
			for i := range 6 { // a copy of each
				d.segment(0, 100, syn, nil).Time += int64(i/2) * 3e9
			}
		}, rdma.Given{}, decode.Asked{Connections: 1, Requests: 3, Longest: 6e9 + 4e6, First: 1}},
		{"accepted", func(d *dialogue) {
			d.segment(0, 100, syn, nil)
			d.segment(1, 500, syn|ack, nil)
		}, rdma.Given{}, decode.Asked{}},
		{"accepted, of which one direction was captured", func(d *dialogue) {
			d.next = [2]uint32{101, 501}
			d.segment(0, 100, syn, nil)
			d.say(0, call)
		}, rdma.Given{}, decode.Asked{}},
		{"accepted, and ended at once", func(d *dialogue) {
			d.segment(0, 100, syn, nil)
			d.segment(1, 500, syn|ack, nil)
			d.segment(1, 501, rst, nil)
		}, rdma.Given{}, decode.Asked{}},
		{"given up by who asked", func(d *dialogue) {
			d.segment(0, 100, syn, nil)
			d.segment(0, 101, rst, nil)
		}, rdma.Given{}, decode.Asked{}},
		{"another service", func(d *dialogue) {
			for _, p := range []struct {
				side int
				flag byte
			}{{0, syn}, {1, rst | ack}} {
				b := d.segment(p.side, 100, p.flag, nil).Data
				binary.BigEndian.PutUint16(b[34+2*(1-p.side):], 443)
			}
		}, rdma.Given{}, decode.Asked{}},
	} {
		var d dialogue
		c.talk(&d)
		for _, trackers := range []int{0, 1, 2} {
			st, _ := d.run(decode.Options{Trackers: trackers})
			if st.Refused != c.refused || st.Unanswered != c.unanswered {
				t.Errorf("%s, %d trackers: refused %+v, unanswered %+v", c.name, trackers, st.Refused, st.Unanswered)
			}
		}
	}
}
