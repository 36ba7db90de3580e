package iwarp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Attributes of a directory, as NFSv3 sends them: from c15b on they look like a
// Send of 49499 bytes, with a valid control word and queue number 0.
const looksLikeSend = `00000001 00000010 01000101 01000000 13000000
	c15b 4143 00000001 00000000 00000017 00000008 66696c65 2d31312d 4f90db21 76667dfc 00000001 00000001 000001a4 00000001`

// TestNoSend begins in the middle of a long reply: what looks like the header of a
// Send there must not swallow the messages that follow.
func TestNoSend(t *testing.T) {
	call := unhex(t, fpduCall)
	for _, at := range []int{0, 600, 1000} {
		for _, size := range []int{1448, 500} {
			data := append(bytes.Repeat([]byte{0x5a}, at), unhex(t, looksLikeSend)...)
			data = append(data, bytes.Repeat([]byte{0x5a}, 2000-len(data))...)
			rec := newRecorder()
			c := NewTracker(rec, Options{}).New(connection())
			h := &c.halves[1]
			n := uint64(0)
			give := func(p []byte) {
				n++
				h.data(p, rdma.Ref{Number: n, Time: int64(n)})
			}
			for ; len(data) > 0; data = data[min(size, len(data)):] {
				give(data[:min(size, len(data))])
			}
			for range 20 {
				give(call)
			}
			c.Close("", rdma.Ref{})
			sends := 0
			for _, l := range rec.log {
				if strings.HasPrefix(l, "send") {
					sends++
				}
			}
			if sends != 20 {
				t.Errorf("at %d, segments of %d: %d Sends, want 20", at, size, sends)
			}
		}
	}
}
