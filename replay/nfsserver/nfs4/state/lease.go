package state

import "time"

// leases tell how long clients have been silent.
type leases struct {
	length time.Duration
	now    func() time.Time
}

func (l *leases) renew(c *Client) { c.renewed.Store(l.now().UnixNano()) }

// expired reports whether a lease has run out at a time. It does not run out while a COMPOUND of
// the client is executed (RFC 8881, section 8.3).
func (l *leases) expired(c *Client, at time.Time) bool {
	return c.busy.Load() == 0 && at.UnixNano()-c.renewed.Load() > int64(l.length)
}
