package text

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// TestManagementCut: of a message of connection management, whatever the capture has cut of it, nothing is shown that is not in
// the whole one.
func TestManagementCut(t *testing.T) {
	for name, s := range map[string]string{
		"REQ":  "010702030000000000000002504189b30010000000000000b3894150000000000000000001064e51505400fffe12340200000000000000000000118000000000000000a08f9b23a6ffff30f0ffffffff00000000000000000000ffffc000020200000000000000000000ffffc00002018109d0000040008800000000000000000000000000000000000000000000000000000000000000000000000000000000000000000040c434000000000000000000000000c0000202000000000000000000000000c0000201f6ab0e1801010303",
		"REP":  "010702030000000000000002504189b30013000000000000ce0dcdfab38941500000000000001100000000004303c00000807800505400fffe123401f6ab0e1801000303",
		"DREQ": "010702030000000000000002504189b30015000000000000b3894150ce0dcdfa000011",
		"REJ":  "010702030000000000000002590f8a5d0012000000000000000000005d8a0f5900000008",
	} {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, make([]byte, ibcm.MADSize-len(b))...)
		show := func(n int) []string {
			var p PacketLister
			p.management(&roce.Packet{Payload: b[:n], PayloadLen: len(b)})
			return strings.Fields(string(p.line.b))
		}
		whole := show(len(b))
		for n := ibcm.HeaderSize; n < len(b); n++ {
			for _, word := range show(n) {
				if !slices.Contains(whole, word) && word != "private" && !strings.HasPrefix("f6ab0e18", word[:min(len(word), 8)]) {
					t.Errorf("%s cut after %d bytes: %q, in all %q", name, n, show(n), whole)
					break
				}
			}
		}
	}
}
