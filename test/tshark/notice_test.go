package tshark

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestNotices checks that the comparison sees each kind of difference, and
// that exceptions let nothing pass that they are not meant for.
func TestNotices(t *testing.T) {
	call := func() *message {
		return &message{
			xid: 7, first: 1, last: 1,
			header: values{"rpcordma.xid": {"7"}, "rpcordma.flow_control": {"128"}},
			values: values{"rpc.xid": {"7"}, "rpc.msgtyp": {"0"}, "nfs.offset4": {"4096"}, "nfs.access_check": {"511"}},
			tx:     facts{fabric: rdma.RoCEv2, connection: &rdma.Connection{Fabric: rdma.RoCEv2}, first: rdma.Ref{Number: 1}},
		}
	}
	same := func() *row {
		return &row{frame: 1, values: map[string][]string{
			"infiniband.bth.psn": {"5"}, "rpcordma.xid": {"7"}, "rpcordma.flow_control": {"128"},
			"rpc.xid": {"7"}, "rpc.msgtyp": {"0"}, "nfs.offset4": {"4096"}, "nfs.access_check": {"255"},
		}}
	}
	for _, test := range []struct {
		name   string
		change func(r *row, m *message)
		want   int
	}{
		{"same", func(*row, *message) {}, 0},
		{"packet field", func(r *row, _ *message) { r.values["infiniband.bth.psn"] = []string{"6"} }, 1},
		{"packet field missing", func(r *row, _ *message) { delete(r.values, "infiniband.bth.psn") }, 1},
		{"packet field of tshark only", func(r *row, _ *message) { r.values["infiniband.reth.va"] = []string{"1"} }, 1},
		{"header field", func(r *row, _ *message) { r.values["rpcordma.flow_control"] = []string{"1"} }, 1},
		{"message field", func(r *row, _ *message) { r.values["nfs.offset4"] = []string{"0"} }, 1},
		{"one value too many", func(r *row, _ *message) { r.values["nfs.offset4"] = []string{"4096", "0"} }, 1},
		{"message of tshark only", func(r *row, _ *message) { r.values["rpc.xid"] = []string{"8"} }, 2},
		{"message of ours only", func(r *row, _ *message) { delete(r.values, "rpc.xid"); delete(r.values, "rpc.msgtyp") }, 1},
		{"direction", func(r *row, _ *message) { r.values["rpc.msgtyp"] = []string{"1"} }, 2},
		{"bits that an exception does not cover", func(r *row, _ *message) { r.values["nfs.access_check"] = []string{"254"} }, 1},
		{"clock that no exception covers", func(r *row, m *message) {
			r.values[requestFrame], m.values[requestFrame] = []string{"2"}, []string{"1"}
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, r := call(), same()
			test.change(r, m)
			known := map[string]bool{}
			for _, f := range allFields {
				known[f.name] = true
			}
			failures := 0
			d := &diff{
				fail: func(string) { failures++ }, report: newReport(), known: known,
				ours: &ours{
					frames:   map[uint64]*frame{1: {values: values{"infiniband.bth.psn": {"5"}}}},
					messages: []*message{m}, byXID: map[uint32][]*message{7: {m}},
				},
				theirs: map[uint64]*row{1: r},
			}
			d.compare()
			if failures != test.want {
				t.Errorf("%d differences, want %d", failures, test.want)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	for _, test := range []struct {
		kind     kind
		in, want string
	}{
		{number, "0x0000001f", "31"},
		{number, "18446744073709551615", "18446744073709551615"},
		{number, "True", "1"},
		{number, "False", "0"},
		{octets, "AB:cd:0f", "abcd0f"},
		{octets, "<MISSING>", ""},
		{text, "a b", "a b"},
		{digest, "616263", "616263"},
	} {
		if got := test.kind.canonical(test.in); got != test.want {
			t.Errorf("canonical(%q) = %q, want %q", test.in, got, test.want)
		}
	}
	if got := nanoseconds(1234567890); got != "1.234567890" {
		t.Errorf("nanoseconds: %s", got)
	}
	if got := nanoseconds(-5); got != "-0.000000005" {
		t.Errorf("nanoseconds: %s", got)
	}
}
