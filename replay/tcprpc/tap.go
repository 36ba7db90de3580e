package tcprpc

import (
	"net"

	"github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// tapped is a connection that shows its bytes to a Tap.
type tapped struct {
	net.Conn
	tcp *tap.TCP
	iov [][]byte
}

func newTapped(nc net.Conn, o *Options, dialed bool) *tapped {
	return &tapped{Conn: nc, tcp: tap.NewTCP(o.Tap, addrPort(nc.LocalAddr()), addrPort(nc.RemoteAddr()), dialed)}
}

func (t *tapped) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if n > 0 {
		t.tcp.Received(b[:n])
	}
	if err != nil {
		t.tcp.ReceivedFIN()
	}
	return n, err
}

// Write informs the Tap first, since the peer may answer before the write returns.
func (t *tapped) Write(b []byte) (int, error) {
	t.tcp.Sent(b)
	return t.Conn.Write(b)
}

func (t *tapped) writeBuffers(b *net.Buffers) error {
	t.iov = append(t.iov[:0], *b...) // the Tap consumes its list
	t.tcp.Sent(t.iov...)
	_, err := b.WriteTo(t.Conn)
	return err
}

func (t *tapped) Close() error {
	t.tcp.SentFIN()
	return t.Conn.Close()
}
