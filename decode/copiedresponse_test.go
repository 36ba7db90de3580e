package decode_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestCopiedReadResponse: a Read Response that comes again is one that the requester has waited for only if it asked again.
func TestCopiedReadResponse(t *testing.T) {
	const later = 2 * time.Millisecond
	packets := sample(t, "rocev2-nfs3-basic.pcap.zst", 0)
	type times struct {
		pull   time.Duration
		repeat int
	}
	pulls := func(packets []capture.Packet) map[uint32]times {
		m := map[uint32]times{}
		decodedWith(packets, decode.Options{}, func(tx *transaction.Transaction) {
			if p, ok := tx.Phases(); ok && tx.Reads > 0 {
				m[tx.XID] = times{p.ArgumentPull, tx.Retransmits}
			}
		})
		return m
	}
	// with adds copies of packets.
	with := func(delays map[int]time.Duration) []capture.Packet {
		out := slices.Clone(packets)
		for i, d := range delays {
			p := packets[i]
			p.Time += int64(d)
			out = append(out, p)
		}
		slices.SortStableFunc(out, func(a, b capture.Packet) int { return cmp.Compare(a.Time, b.Time) })
		return out
	}
	want := pulls(packets)
	request, tried, longest := -1, 0, time.Duration(0)
	for i := range packets {
		v, ok := look(&packets[i])
		switch {
		case ok && v.q.Opcode.IsReadRequest():
			request = i
			continue
		case !ok || !v.q.Opcode.IsReadResponse() || !v.q.Opcode.Ends() || request < 0:
			continue
		}
		if ask, _ := look(&packets[request]); v.q.PSN-ask.q.PSN > 1024 {
			continue // of another Read
		}
		for _, c := range []struct {
			name   string
			delays map[int]time.Duration
			repeat int
			asked  bool
		}{
			{"copied", map[int]time.Duration{i: later}, 1, false},
			{"requested again", map[int]time.Duration{i: later, request: later - time.Microsecond}, 2, true},
		} {
			longer, changed := time.Duration(0), 0
			for xid, got := range pulls(with(c.delays)) {
				if got != want[xid] {
					changed++
					longer = got.pull - want[xid].pull
					if got.repeat != c.repeat {
						t.Errorf("packet %d, %s: %d packets seen again, want %d", i+1, c.name, got.repeat, c.repeat)
					}
				}
			}
			if c.asked { // the last Read of its call, or another one
				longest = max(longest, longer)
				longer = 0
			}
			if changed != 1 || longer != 0 {
				t.Errorf("packet %d, %s: %d transactions differ, by %v", i+1, c.name, changed, longer)
			}
		}
		if tried++; tried == 10 {
			break
		}
	}
	if tried == 0 || longest <= 0 {
		t.Errorf("%d Read Responses; requested again, they took %v longer", tried, longest)
	}
}
