package cli

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Resolver looks up host names. An address whose name is not found within a second is shown as an address,
// and not looked up again.
type Resolver struct {
	names map[netip.Addr]string
	from  *net.Resolver
}

const lookupTime = time.Second

// maxNames is how many names of hosts are remembered.
const maxNames = 1 << 14

// NewResolver makes a resolver. A confined process uses Go's own: the C library's loads what
// /etc/nsswitch.conf names.
func NewResolver(confined bool) *Resolver {
	return &Resolver{names: make(map[netip.Addr]string), from: &net.Resolver{PreferGo: confined}}
}

// Name is the name of an address; empty if it has none, or if that takes too long.
func (r *Resolver) Name(a netip.Addr) string {
	name, ok := r.names[a]
	if !ok {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
		defer cancel()
		if found, err := r.from.LookupAddr(ctx, a.String()); err == nil && len(found) > 0 {
			name = strings.TrimSuffix(found[0], ".")
		}
		if len(r.names) >= maxNames {
			clear(r.names)
		}
		r.names[a] = name
	}
	return name
}
