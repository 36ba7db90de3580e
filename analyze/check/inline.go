package check

import (
	"fmt"
	"strings"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// linuxInline is the inline threshold, in bytes, that Linux offers on both sides.
const linuxInline = 4096

// inline reports inline thresholds that cause chunks.
func (c *Checker) inline(s *conn) {
	if !s.rpc || s.version != 0 && s.version != rpcrdma.Version1+1 {
		return
	}
	fwd, ok := s.forward()
	k := s.c.Resolve()
	if !ok || !k.Declared(0) || !k.Declared(1) {
		c.skip(ruleSmallInline, NoSetup)
		return
	}
	var seen []string
	var sides [2]bool // sides that keep it low
	for i, what := range [...]string{"calls", "replies"} {
		from := fwd
		if i == 1 {
			from = fwd.Other()
		}
		to := from.Other()
		n := rdma.InlineThreshold(&k.Setup[from].Private, &k.Setup[to].Private)
		if n >= linuxInline {
			continue
		}
		var why []string
		for _, side := range [...]rdma.Side{from, to} {
			p := &k.Setup[side].Private
			size := p.SendSize
			if side == to {
				size = p.ReceiveSize
			}
			by := "by its private data"
			if !p.Present {
				size, by = rdma.DefaultInlineThreshold, "for lack of private data"
			}
			if size == n {
				why = append(why, link.AddrString(k.Ends[side].Addr)+" "+by)
				sides[side] = true
			}
		}
		seen = append(seen, fmt.Sprintf("%s %d bytes, %s", what, n, strings.Join(why, " and ")))
	}
	if len(seen) == 0 {
		c.ok(ruleSmallInline)
		return
	}
	side, by := fwd, Unknown
	switch {
	case sides[0] && !sides[1]:
		side, by = 0, s.role(0)
	case sides[1] && !sides[0]:
		side, by = 1, s.role(1)
	}
	ref := k.Setup[0].Frame
	if later := k.Setup[1].Frame; later.Number > ref.Number {
		ref = later
	}
	f := s.finding(ruleSmallInline, ref, side, by)
	f.Expected = fmt.Sprintf("%d bytes or more, as between Linux peers", linuxInline)
	f.Seen = strings.Join(seen, "; ")
	c.report(f)
}
