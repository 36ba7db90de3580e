// Package tcprpc carries RPC over TCP with record marking (RFC 5531, section
// 11) behind the interfaces of package transport: calls in both directions on
// one connection, pipelined, and optionally retransmitted after a reconnect.
package tcprpc

import (
	"context"
	"net"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport/budget"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Options of a Requester and of a Server. The zero Options are ready for use.
type Options struct {
	// MaxRecord is the size in bytes of the longest message that is accepted; a
	// longer one ends the connection. Default 8 MiB.
	MaxRecord int

	// Limits of a Server.

	// MaxCalls is how many calls of one connection the handler may work on at a
	// time; further calls are not read meanwhile. Default 256.
	MaxCalls int
	// MaxQueued bounds the bytes of replies that wait for a peer to read them;
	// beyond it no calls of that peer are read. Default 16 MiB.
	MaxQueued int
	// MaxConnections bounds the number of connections. A new one beyond it evicts
	// the longest idle connection of the address that has the most connections,
	// or is refused. Default 4096.
	MaxConnections int
	// Newcomers bounds the number of connections that have not completed a record
	// yet. A new one beyond it evicts another, of the address that has the most.
	// NewcomerTime is how long a connection may take until its first record.
	// Defaults 2048 and 30 s.
	Newcomers    int
	NewcomerTime time.Duration
	// RecordTimeout is how long a record may take from its first byte to its last.
	// ReplyTimeout is how long a peer may take to read what is written at once, at
	// most 4 MiB. Default 30 s each.
	RecordTimeout, ReplyTimeout time.Duration
	// Budget bounds what all connections hold together, with those of other
	// servers that share the Budget. Default: a Budget of its own, of
	// budget.DefaultBytes.
	Budget *budget.Budget

	// Time, and reconnecting.

	// Timeout applies to calls that have none of their own. Default 60 s, as the
	// Linux NFS client.
	Timeout time.Duration
	// DialTimeout bounds one attempt to connect. Default 10 s.
	DialTimeout time.Duration
	// Reconnect lets a Requester connect again after a loss and retransmit all
	// outstanding calls, with the same XIDs. Without it these fail with
	// transport.ErrDisconnected.
	Reconnect bool
	// BackoffMin and BackoffMax bound the time between attempts to connect, which
	// doubles each time. Default 100 ms and 30 s.
	BackoffMin, BackoffMax time.Duration

	// The network.

	// Dial, if set, makes the connections of a Requester in the place of
	// net.Dialer.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Tap receives what is sent and received as TCP packets. They are synthetic:
	// the kernel does not show the real ones.
	Tap verbs.Tap
	// Link is a model of a network, applied to what this side sends.
	Link verbs.Link
}

func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	dur := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MaxRecord, 8<<20)
	def(&o.MaxCalls, 256)
	def(&o.MaxQueued, 16<<20)
	def(&o.MaxConnections, 4096)
	def(&o.Newcomers, 2048)
	dur(&o.NewcomerTime, 30*time.Second)
	dur(&o.RecordTimeout, 30*time.Second)
	dur(&o.ReplyTimeout, 30*time.Second)
	dur(&o.Timeout, time.Minute)
	dur(&o.BackoffMin, 100*time.Millisecond)
	dur(&o.BackoffMax, 30*time.Second)
	dur(&o.DialTimeout, 10*time.Second)
	o.BackoffMax = max(o.BackoffMax, o.BackoffMin)
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	return o
}
