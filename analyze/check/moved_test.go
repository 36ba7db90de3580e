package check

import (
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// TestNoHeaderInRDMA: an RPC message in a chunk is none that has a transport
// header, whatever its first words are. XID 1 is also the number of a version,
// of REPLY, and of TRUE.
func TestNoHeaderInRDMA(t *testing.T) {
	for xid := range uint32(4) {
		for _, segments := range []int{1, 2, 6, 7} {
			for kind := range 8 {
				bodies := map[string][]byte{
					"attributes": words(0, 1, kind, 0644, 1, 0, 0, make([]byte, 600)),
					"zeros":      make([]byte, 600),
					"ones":       words(0, 1, 1, 1, 1, 1, 1, 1, make([]byte, 600)),
					"failed":     words(kind, 1, 1, 1, make([]byte, 600)),
				}
				for name, body := range bodies {
					s := newScene()
					s.xid = xid - 1
					s.longReply(func(h, r *rpcrdma.Header, rpc *[]byte) {
						*rpc = replyOf(h.XID, body)
						seg := h.Reply[0]
						n := (len(*rpc)/segments + 3) &^ 3
						h.Reply, r.Reply = nil, nil
						for left := len(*rpc); left > 0; left -= n {
							part := seg
							part.Length = uint32(min(n, left))
							h.Reply = append(h.Reply, part)
							r.Reply = append(r.Reply, part)
							seg.Offset += uint64(part.Length)
						}
					})
					if got := s.run(RFC8166).texts("header-in-rdma"); len(got) > 0 {
						t.Errorf("XID %d, %d segments, %s of type %d: %s", xid, segments, name, kind, fmt.Sprint(got))
					}
				}
			}
		}
	}
}
