package split

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// isSetup reports whether a packet sets a connection up: connection management
// of RoCE and InfiniBand, the SYN of TCP, an MPA frame of iWARP.
func isSetup(v *decode.PacketView) bool {
	for i := range v.RoCE {
		if q := &v.RoCE[i]; q.Opcode.Service() == roce.ServiceUD && q.DestQP == 1 {
			return true
		}
	}
	f := v.Frame
	if f.Proto != link.TCP {
		return false
	}
	if f.TCPFlags&tcp.SYN != 0 {
		return true
	}
	var m iwarp.MPAFrame
	_, err := m.Decode(f.Payload)
	return err == nil
}

const (
	maxSetupPackets = 8        // kept of one connection
	maxSetupBytes   = 16 << 20 // kept of all together
)

// setups keeps the packets that set connections up.
type setups struct {
	stats *Stats
	list  map[*conn][]*capture.Packet
	order []*conn // oldest first, from head on
	head  int
	bytes int
}

func (s *setups) of(c *conn) []*capture.Packet { return s.list[c] }

// keep copies a packet. Where there is no room, the oldest connections are
// forgotten.
func (s *setups) keep(c *conn, p *capture.Packet) {
	list, old := s.list[c]
	if len(list) >= maxSetupPackets || len(p.Data) > maxSetupBytes/64 {
		return
	}
	if s.list == nil {
		s.list = make(map[*conn][]*capture.Packet)
	}
	if !old {
		s.order = append(s.order, c)
	}
	q := *p
	q.Data = append([]byte(nil), p.Data...)
	s.list[c] = append(list, &q)
	s.bytes += len(q.Data) + setupOverhead
	for s.bytes > maxSetupBytes && s.order[s.head] != c {
		gone := s.order[s.head]
		s.order[s.head] = nil
		if s.head++; s.head > 1024 && s.head > len(s.order)/2 {
			n := copy(s.order, s.order[s.head:])
			clear(s.order[n:])
			s.order, s.head = s.order[:n], 0
		}
		for _, p := range s.list[gone] {
			s.bytes -= len(p.Data) + setupOverhead
		}
		delete(s.list, gone)
		s.stats.SetupLost++
	}
}

// setupOverhead is what a packet takes beside its bytes.
const setupOverhead = 128

// key names what packets have in common before their connection is known: the
// two ends of TCP, in ascending order, or a direction of RoCE.
type key struct {
	a, b netip.AddrPort
	qpn  uint32
}

func keyOf(v *decode.PacketView) (key, bool) {
	f := v.Frame
	if f.Proto == link.TCP {
		k := key{a: netip.AddrPortFrom(f.Src, f.SrcPort), b: netip.AddrPortFrom(f.Dst, f.DstPort)}
		if k.b.Compare(k.a) < 0 {
			k.a, k.b = k.b, k.a
		}
		return k, true
	}
	if len(v.RoCE) == 0 || v.RoCE[0].Problem != roce.NoProblem || v.RoCE[0].DestQP <= 1 {
		return key{}, false
	}
	return key{a: netip.AddrPortFrom(f.Src, 0), b: netip.AddrPortFrom(f.Dst, 0), qpn: v.RoCE[0].DestQP}, true
}

// waiting are packets whose connection will be known when a later packet is
// recognised, and IP fragments.
type waiting struct {
	byKey         map[key][]uint64
	fragments     map[fragment][]uint64
	frame         link.Frame
	keyed, pieces int // numbers in the two maps
}

type fragment struct {
	src, dst netip.Addr
	id       uint32
}

const (
	maxWaiting     = 1 << 14 // keys
	maxWaitingEach = 512     // packets of one
	maxWaitingAll  = 1 << 18 // packets of all together
)

func (w *waiting) add(k key, number uint64) {
	if w.byKey == nil || len(w.byKey) >= maxWaiting || w.keyed >= maxWaitingAll {
		w.byKey, w.keyed = make(map[key][]uint64), 0
	}
	if list := w.byKey[k]; len(list) < maxWaitingEach {
		w.byKey[k] = append(list, number)
		w.keyed++
	}
}

// take returns the packets that wait, and forgets them.
func (w *waiting) take(k key) []uint64 {
	if len(w.byKey) == 0 {
		return nil
	}
	list, ok := w.byKey[k]
	if ok {
		delete(w.byKey, k)
		w.keyed -= len(list)
	}
	return list
}

func (w *waiting) fragment(f *link.Frame, number uint64) {
	if w.fragments == nil || len(w.fragments) >= maxWaiting || w.pieces >= maxWaitingAll {
		w.fragments, w.pieces = make(map[fragment][]uint64), 0
	}
	k := fragment{f.Src, f.Dst, f.FragmentID}
	if list := w.fragments[k]; len(list) < maxWaitingEach {
		w.fragments[k] = append(list, number)
		w.pieces++
	}
}

// completed returns the fragments that a reassembled frame was made of, except for the last one, which is the
// current packet.
func (w *waiting) completed(v *decode.PacketView) []uint64 {
	if len(w.fragments) == 0 {
		return nil
	}
	f := &w.frame
	link.Decode(v.Packet.Link, v.Packet.Data, v.Packet.Length, f)
	if f.Proto != link.Fragment {
		return nil
	}
	k := fragment{f.Src, f.Dst, f.FragmentID}
	list, ok := w.fragments[k]
	if ok {
		delete(w.fragments, k)
		w.pieces -= len(list)
	}
	return list
}
