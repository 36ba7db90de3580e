package roce

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestPush: a request that still waits for responses is not overwritten by later ones, although they are acknowledged.
func TestPush(t *testing.T) {
	tr := NewTracker(nil, rdma.Hooks{}, new(rdma.Numbers), Limits{})
	fl := &flow{c: &connection{Connection: new(rdma.Connection)}}
	for i := range uint32(40) {
		r := tr.messages.rings.push(fl, i, 0)
		*r = request{kind: sendRequest, start: i, count: 1}
		if i == 3 {
			r.kind = readRequest
		}
		if r != fl.newest() {
			t.Fatalf("request %d is not the newest", i)
		}
		fl.acked = fl.head
	}
	if r := fl.find(3); r == nil || r.kind != readRequest {
		t.Error("the Read was overwritten")
	}
	if len(fl.ring) != 64 {
		t.Errorf("room for %d requests", len(fl.ring))
	}
}
