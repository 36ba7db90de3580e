// Package tcprpc carries RPC over TCP with record marking (RFC 5531, section
// 11) behind the interfaces of package transport: calls in both directions on
// one connection, pipelined, and sent again after a reconnect if that is
// wanted.
package tcprpc

import (
	"context"
	"net"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport/budget"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Options of a Requester and of a Server. The zero Options are fit for use.
type Options struct {
	// MaxRecord is the longest message in bytes that is accepted; a longer one
	// ends the connection. Default 8 MiB.
	MaxRecord int
	// Timeout of calls that have none of their own. Default 60 s, as the Linux
	// NFS client.
	Timeout time.Duration
	// MaxCalls is how many calls of one connection a handler works on at a
	// time; further calls are not read. Default 256.
	MaxCalls int
	// MaxQueued is how many bytes of replies may wait for a peer that does not
	// read before its calls are not read any more. Default 16 MiB.
	MaxQueued int
	// MaxConnections bounds the connections of a Server. One more ends another, of
	// the address that has the most the one that has been idle for longest, or is
	// refused. Default 4096.
	MaxConnections int
	// Newcomers bounds the connections of a Server that have not completed a record
	// yet, and NewcomerTime is how long they may take for it. One more ends
	// another, of the address that has the most. Defaults 2048 and 30 s.
	Newcomers    int
	NewcomerTime time.Duration
	// RecordTimeout is how long a record may take to a Server, from its first byte
	// to its last; ReplyTimeout how long a peer may take to read what a Server
	// writes at once, 4 MiB at most. Default 30 s each.
	RecordTimeout, ReplyTimeout time.Duration
	// Budget is what all connections of a Server may hold together, and those of
	// other servers that it is shared with. Default: one of its own, of
	// budget.DefaultBytes.
	Budget *budget.Budget

	// Reconnect lets a Requester connect again after a loss and send all
	// outstanding calls again, with their XIDs. Without it they fail with
	// transport.ErrDisconnected.
	Reconnect bool
	// BackoffMin and BackoffMax bound the time between attempts to connect,
	// which doubles. Default 100 ms and 30 s.
	BackoffMin, BackoffMax time.Duration
	// DialTimeout bounds one attempt to connect. Default 10 s.
	DialTimeout time.Duration
	// Dial replaces net.Dialer for a Requester.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Tap sees what is sent and received as TCP packets that were made up for
	// it: the real ones are the kernel's.
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
