package text

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/link"
)

// hosts knows how addresses are written, and how wide their column has become.
type hosts struct {
	known map[netip.Addr]host
	width int

	pairs [pairs]pair
}

// pairs is how many pairs of hosts are kept as they are written; a power of 2.
const pairs = 16

// pair is the column of two hosts as it is written, with the spaces behind it.
type pair struct {
	from, to netip.Addr
	width    int // of all hosts at that time
	text     []byte
	columns  int
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

// pair returns "from > to" with the spaces that fill its column. The column grows with its widest entry, so that later
// lines are aligned again. Pairs with different numbers do not get into each other's way.
func (h *hosts) pair(name func(netip.Addr) string, from, to netip.Addr, number int) *pair {
	p := &h.pairs[uint(number)%pairs]
	if p.width != h.width || p.width == 0 || p.from != from || p.to != to {
		h.write(p, name, from, to)
	}
	return p
}

func (h *hosts) write(p *pair, name func(netip.Addr) string, from, to netip.Addr) {
	a, b := h.get(from, name), h.get(to, name)
	l := line{b: p.text[:0]}
	l.b = append(append(append(l.b, a.text...), " > "...), b.text...)
	l.col = a.width + len(" > ") + b.width
	h.width = max(h.width, addressWidth, l.col)
	l.pad(h.width + 1)
	*p = pair{from, to, h.width, l.b, l.col}
}
