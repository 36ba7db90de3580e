package text

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode"
)

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		of   decode.Asked
		want string
	}{
		{decode.Asked{}, ""},
		{decode.Asked{Connections: 1, Requests: 1, First: 7}, "1 attempt to connect by RDMA has no answer in the capture: 1 request; the first is packet 7"},
		{decode.Asked{Connections: 1, V1: 1, Requests: 16, Longest: 63e9, First: 1},
			"1 attempt to connect by RDMA has no answer in the capture: 16 requests within 63.00s; the first is packet 1; over RoCEv1, as with a GID of that type: a peer that expects RoCEv2 does not answer"},
		{decode.Asked{Connections: 2, V1: 1, Requests: 5, BadICRC: 2, Longest: 8e9, First: 3},
			"2 attempts to connect by RDMA have no answer in the capture: 5 requests within up to 8.000s; the first is packet 3; 1 of the attempts over RoCEv1; 2 of the requests with a wrong ICRC"},
		{decode.Asked{Connections: 1, Requests: 2, BadICRC: 2, Longest: 8e9, First: 3},
			"1 attempt to connect by RDMA has no answer in the capture: 2 requests within 8.000s; the first is packet 3; every request has a wrong ICRC: the receiver drops it silently"},
		{decode.Asked{Connections: 1, V1: 1, OtherVersion: 1, OtherPKey: 1, PKeys: [2]uint16{0x8001, 0xffff}, Requests: 1, First: 3},
			"1 attempt to connect by RDMA has no answer in the capture: 1 request; the first is packet 3; over RoCEv1, as with a GID of that type: a peer that expects RoCEv2 does not answer; the peer sends packets of the other version of RoCE; the P_Keys of the two ends do not match in 1 of the attempts (first 0x8001, and 0xffff of the peer)"},
	} {
		if got := Asked(&c.of, "by RDMA"); got != c.want {
			t.Errorf("%s; want %s", got, c.want)
		}
	}
}
