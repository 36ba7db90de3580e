package tcprpc

import (
	"github.com/rpcrdma/toolkit/replay/internal/link"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// wrap puts the Tap and the model of a network around the socket.
func (c *conn) wrap(dialed bool) {
	if c.opts.Tap != nil {
		t := newTapped(c.nc, c.opts, dialed)
		c.nc, c.w = t, t
	}
	if c.opts.Link != (verbs.Link{}) {
		l := link.NewConn(c.nc, c.opts.Link)
		c.nc, c.w = l, l
	}
}
