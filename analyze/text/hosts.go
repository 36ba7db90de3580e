package text

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/link"
)

// hosts knows how addresses are written, and how wide their column has become.
type hosts struct {
	known map[netip.Addr]host
	width int

	from, to netip.Addr // of the line before
	last     []byte     // how they were written
	lastWide int
}

type host struct {
	text  string
	width int
}

// maxHosts bounds the number of remembered hosts.
const maxHosts = 4096

func (h *hosts) get(a netip.Addr, name func(netip.Addr) string) host {
	x, ok := h.known[a]
	if !ok {
		if h.known == nil || len(h.known) >= maxHosts {
			h.known = make(map[netip.Addr]host)
		}
		if name != nil {
			text, width := Safe(nil, []byte(name(a)))
			x = host{string(text), width}
		}
		if x.text == "" {
			t := link.AddrString(a)
			x = host{t, len(t)}
		}
		h.known[a] = x
	}
	return x
}

// pair writes "from > to" and pads the column. The column grows with its widest entry, so that later lines
// are aligned again.
func (h *hosts) pair(l *line, name func(netip.Addr) string, from, to netip.Addr) {
	start := l.col
	if from != h.from || to != h.to || len(h.last) == 0 {
		a, b := h.get(from, name), h.get(to, name)
		h.last = append(append(append(h.last[:0], a.text...), " > "...), b.text...)
		h.from, h.to, h.lastWide = from, to, a.width+3+b.width
	}
	l.b = append(l.b, h.last...)
	l.col += h.lastWide
	h.width = max(h.width, addressWidth, l.col-start)
	l.pad(start + h.width + 1)
}
