package check

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/roce"
)

// TestUsualResponse: a response to one Read of too many is not usual, on a connection where all else was.
func TestUsualResponse(t *testing.T) {
	s := newScene()
	s.connect()
	for range 3 {
		s.small()
	}
	var asked []uint32
	for i := range uint32(5) { // four are announced
		asked = append(asked, s.readRequest(server, memoryAt(0x100+i, 100)))
	}
	for _, psn := range asked {
		q := s.packet(client, roce.RCReadResponseOnly)
		q.PSN, q.Payload = psn, make([]byte, 100)
		q.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: s.msn[server]}
		s.put(q)
	}
	s.small()
	alike(t, s)
	if ids := s.run(RFC8166).ids(); !slices.Contains(ids, "read-depth-exceeded") {
		t.Error(ids)
	}
}
