package text

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/link"
)

// hosts knows how addresses are written, and how wide their column has become.
type hosts struct {
	known map[netip.Addr]host
	width int
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
	a, b := h.get(from, name), h.get(to, name)
	l.b = append(l.b, a.text...)
	l.b = append(l.b, " > "...)
	l.b = append(l.b, b.text...)
	l.col += a.width + 3 + b.width
	h.width = max(h.width, addressWidth, l.col-start)
	l.pad(start + h.width + 1)
}
