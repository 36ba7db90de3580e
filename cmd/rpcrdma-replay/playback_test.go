package main

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/playback"
)

// What a playback cannot answer is counted and named.
func TestUnanswered(t *testing.T) {
	for _, c := range []struct {
		counts playback.Counts
		want   string
	}{
		{playback.Counts{Records: 3, Bytes: 7}, ""},
		{playback.Counts{NoReply: 1}, ": 1 without call or reply"},
		{playback.Counts{Cut: 2, Opaque: 3, Backward: 4, Full: 5}, ": 2 of which the capture lacks a part, 3 that are encrypted, 4 from a server to its client, 5 for lack of room, see --limit-memory"},
	} {
		if got := unanswered(c.counts, ": "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.counts, got, c.want)
		}
	}
}
