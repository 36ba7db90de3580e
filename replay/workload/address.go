package workload

import (
	"net/netip"
	"strings"
)

// Knows says where an address occurs in the capture: "as a server", "as a client";
// empty if it does not occur.
func (w *Workload) Knows(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	same := func(s string) bool {
		if b, err := netip.ParseAddr(s); err == nil {
			return b.Unmap().WithZone("") == a
		}
		if b, err := netip.ParseAddrPort(s); err == nil {
			return b.Addr().Unmap().WithZone("") == a
		}
		host, _, _ := cutLast(s, ':')
		return host == a.String()
	}
	for i := range w.Tables.Servers {
		if same(w.Tables.Servers[i].Addr) {
			return "as a server"
		}
		for _, x := range w.Tables.Servers[i].Same {
			if same(x.Addr) || same(x.As) {
				return "as a server"
			}
		}
	}
	for i := range w.Tables.Connections {
		c := &w.Tables.Connections[i]
		if same(c.Client) {
			return "as a client"
		}
		if same(c.Address) {
			return "as a server"
		}
	}
	return ""
}

// cutLast cuts s at the last sep.
func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i > 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
