package link

import (
	"net"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

const (
	// piece is what a long write is cut into, so that its first bytes arrive before
	// its last ones were transmitted.
	piece = 64 << 10
	// inTransit bounds the bytes of a connection that were written and have not
	// arrived. Beyond it a writer waits, as it would for a full socket.
	inTransit = 16 << 20
)

// Conn is a connection with a Line in front of it. Write copies what it is given, and
// returns before it was sent.
type Conn struct {
	net.Conn
	line *Line[[]byte]
}

// NewConn puts a model of a network in front of a connection.
func NewConn(c net.Conn, model verbs.Link) *Conn {
	return &Conn{Conn: c, line: New(model, inTransit, func(b []byte) error {
		_, err := c.Write(b)
		return err
	})}
}

func (c *Conn) Write(b []byte) (int, error) {
	for at := 0; at < len(b); at += piece {
		part := append([]byte(nil), b[at:min(at+piece, len(b))]...)
		if err := c.line.Put(part, len(part)); err != nil {
			return at, err
		}
	}
	return len(b), nil
}

// CloseWrite ends the direction when everything has been sent.
func (c *Conn) CloseWrite() error {
	c.line.End(func() {
		if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			w.CloseWrite() //nolint:errcheck // the reader notices
		}
	})
	return nil
}

// Close drops what has not been sent.
func (c *Conn) Close() error {
	c.line.Close()
	return c.Conn.Close()
}
