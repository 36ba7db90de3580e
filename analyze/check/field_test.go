package check

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestField: what a rule says of captures of situations from public reports.
func TestField(t *testing.T) {
	for _, x := range []struct {
		file, rule string
		want       []string
	}{
		// Of two ends that send different versions of RoCE, neither gets an answer.
		{"v1-against-v2", "connection-unanswered", []string{
			"packets of RoCEv2, as the peer sends; 8 packets of RoCEv1, 7 sent again, and no answer; ",
			"packets of RoCEv1, as the peer sends; 8 packets of RoCEv2, 7 sent again, and no answer; ",
		}},
		{"backchannel-not-granted", "backchannel-down", []string{
			"a backchannel of session 53535353535353535353535353535353 that works; none: the client asked for one, CREATE_SESSION granted none, and no connection was bound to one; ",
		}},
		{"rnr-retry-0", "rnr-nak", []string{
			"a Receive posted for each message that may come; RNR NAK with 1 calls outstanding of 32 granted: fewer Receives were posted; the sender does not try again: its RNR retry count is 0",
		}},
		{"callback-denied", "delegation-recalled", []string{
			"the client to return the delegation; recall of stateid 070707070707070707070707, fh:91267e8a; sent 3 times; the client answered AUTH_ERROR; not returned after it in the capture",
		}},
		{"recall-before-open", "delegation-recalled", []string{
			"the client to return the delegation; recall of stateid 44454c454741544530303031, fh:579a17d1; sent 2 times; sent 4µs before the reply that grants the delegation (frame 5, xid 00000005); CB_SEQUENCE does not name that call as a referring one; the client answered NFS4ERR_BAD_STATEID, then NFS4_OK; DELEGRETURN after 100.02ms in frame 13, xid 00000006: NFS4_OK",
		}},
		{"no-receive-iwarp", "operation-refused", []string{
			"a Receive posted for each message that may come; Terminate: DDP: untagged buffer error: invalid MSN: no buffer, with 1 calls outstanding of 32 granted: fewer Receives were posted; the connection ends",
		}},
		{"req-damaged", "invalidate-not-offered", nil},
		{"icrc-without-identification", "bad-crc", []string{
			"right checksums; 8 of 10 packets with a wrong checksum; sent again, and none was ever acknowledged: the receiver drops them",
		}},
		{"mtu-4096-on-1500", "call-unanswered", []string{
			"a reply; none; the call was acknowledged; its Read list was read by 1 Read, with 21 packets sent again; the last call before the connection ended; no reply; connection ended: disconnect request from 10.0.0.2",
		}},
	} {
		r, err := capture.Open([]string{"../../test/field/testdata/" + x.file + ".pcap.zst"}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		c := New(Options{Rules: All()}, func(f *Finding) {
			if f.Rule.ID == x.rule {
				got = append(got, f.Expected+"; "+f.Seen+"; "+f.Reaction)
			}
		})
		var v rpc.View
		if err := decode.New(decode.Options{Observers: []decode.Observer{c.Observer()}}, func(tx *transaction.Transaction) {
			v.Set(tx)
			c.Transaction(&v)
		}).Run(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
		c.Finish()
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.file, got, x.want)
		}
	}
}

// TestReactionToBadICRC: what is said of packets with a wrong ICRC depends on whether they were acknowledged, and sent again.
func TestReactionToBadICRC(t *testing.T) {
	for _, x := range []struct {
		resent, bad uint64 // of 100 packets
		acked       uint32
		known       bool
		want        string
	}{
		{0, 2, 12, true, "acknowledged all the same: they are wrong in the capture only"},
		{0, 2, 11, true, "a receiver drops such packets; they are sent again"},
		{3, 2, 9, true, "sent again, and none was ever acknowledged: the receiver drops them"},
		{3, 2, 10, true, "a receiver drops such packets; they are sent again"},
		{3, 2, 12, false, "a receiver drops such packets; they are sent again"},
		{3, 30, 12, true, "their number suggests that the capture itself is the cause"},
	} {
		s := &conn{c: new(rdma.Connection)}
		s.c.Sent[1] = rdma.Counters{Packets: 100, Retransmitted: x.resent, BadCRC: x.bad}
		s.badICRC[1] = &[2]uint32{10, 12}
		s.wire[1].hasAck, s.wire[1].acked = x.known, x.acked
		if got := s.reactionToBadICRC(1); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
}

// TestRetries: how often a sender tries again after an RNR NAK is in the setup of its peer.
func TestRetries(t *testing.T) {
	for n, want := range map[uint8]string{
		0: "the sender does not try again: its RNR retry count is 0",
		3: "the sender tries again: its RNR retry count is 3",
		7: "the sender tries again, without end: its RNR retry count is 7",
	} {
		if got := retries(&rdma.Setup{Message: rdma.SetupREP, Frame: rdma.Ref{Number: 1}, RNRRetryCount: n}); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if got := retries(&rdma.Setup{}); got != "the sender tries again, as often as its retry count allows" {
		t.Error(got)
	}
}
