package simulate

import "github.com/rpcrdma/toolkit/decode/link"

// window is a time in which nothing moves.
type window struct{ from, to int64 }

// stalled is when something that is due at t can go on.
func (n *network) stalled(list []window, t int64) int64 {
	for _, w := range list {
		if t < w.from {
			break
		}
		if t < w.to {
			return w.to
		}
	}
	return t
}

// windows are when the path stands still: again and again, at drawn times.
func (n *network) windows() []window {
	s := n.PathStall
	if s == nil {
		return nil
	}
	if n.stalls == nil {
		n.stalls = []window{}
		t := n.Start
		for i := uint64(0); len(n.stalls) < maxStalls; i++ {
			t += n.around(s.Every, 0.3, "stall every", i)
			end := t + n.around(s.For, 0.2, "stall for", i)
			n.stalls = append(n.stalls, window{t, end})
			t = end
		}
	}
	return n.stalls
}

const maxStalls = 4096

// adapterStalls are when a host may not send: the switch pauses it.
func (n *network) adapterStalls(h *host) []window {
	s := n.PathStall
	if s == nil || s.By != PausedBySwitch || (h == n.server) != s.FromServer {
		return nil
	}
	return n.windows()
}

// switchStalls are when the switch does not send to a host: the host pauses it, or what is behind the capture
// points does.
func (n *network) switchStalls(to *host) []window {
	s := n.PathStall
	if s == nil || s.By == PausedBySwitch || (to == n.server) == s.FromServer {
		return nil
	}
	return n.windows()
}

// pauseFrames puts the frames of flow control on the links, from the start of a stall to its end.
func (n *network) pauseFrames(until int64) {
	s := n.PathStall
	if s == nil || s.By == Unseen {
		return
	}
	var sender *host // the switch
	at := AtServer
	if s.By == PausedByReceiver {
		sender = n.server
		if s.FromServer {
			sender = n.clients[0]
		}
	}
	if (s.By == PausedByReceiver) == s.FromServer {
		at = AtClient
	}
	refresh := 0xffff * 512 * 1_000_000_000 / n.LineRate / 2
	for _, w := range n.windows() {
		if w.from > until {
			break
		}
		for t := w.from; t < w.to; t += refresh {
			n.pauseFrame(at, t, sender, 0xffff)
		}
		n.pauseFrame(at, w.to, sender, 0)
	}
}

// pauseFrame is one frame, for priority 3.
func (n *network) pauseFrame(at Point, t int64, sender *host, quanta uint16) {
	f := &link.Pause{PerPriority: true, Priorities: 1 << 3}
	f.Quanta[3] = quanta
	p := &packet{src: sender, pause: f}
	n.record(at, t, p)
	if sender != nil {
		n.record(AtSwitch, t+int64(n.Propagation), p)
	}
}
