package login

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"

	"github.com/rpcrdma/toolkit/decode/krb5"
)

const (
	// maxReply bounds the reply of a KDC in bytes.
	maxReply = 128 << 10
	// patience is how long one KDC may take.
	patience = 5 * time.Second
)

// kdcs are the addresses of a realm's KDCs, from the configuration file or from DNS.
func (l *Login) kdcs(realm string) ([]string, error) {
	file := l.o.Config
	if file == "" {
		file = "/etc/krb5.conf"
	}
	conf, err := config.Load(file)
	var unsupported config.UnsupportedDirective
	if err != nil && !errors.As(err, &unsupported) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	_, found, err := conf.GetKDCs(realm, true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var order []int
	for i := range found {
		order = append(order, i)
	}
	slices.Sort(order)
	var out []string
	for _, i := range order {
		a := found[i]
		if _, _, err := net.SplitHostPort(a); err != nil {
			a = net.JoinHostPort(a, "88")
		}
		out = append(out, a)
	}
	return out, nil
}

// ask sends a request to the KDCs of a realm, one after the other, until one answers. It uses
// TCP, which all KDCs support and which carries replies of any size.
func (l *Login) ask(ctx context.Context, r *krb5.KDCRequest, realm string) (*krb5.Ticket, error) {
	list, err := l.kdcs(realm)
	if err != nil {
		return nil, err
	}
	last := fmt.Errorf("no KDC of %s is known", realm)
	for _, addr := range list {
		b, err := exchange(ctx, addr, r.Bytes())
		if err == nil {
			return r.Reply(b)
		}
		last = fmt.Errorf("the KDC %s: %w", addr, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// exchange sends a message and reads the answer (RFC 4120, section 7.2.2).
func exchange(ctx context.Context, addr string, message []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxReply {
		return nil, fmt.Errorf("a reply of %d bytes", n)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(c, b)
	return b, err
}
