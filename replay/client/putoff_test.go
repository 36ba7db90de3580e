package client_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// answering answers each COMPOUND with a status of PUTFH.
type answering struct {
	transport.Requester
	status nfs4.Nfsstat4
}

func (a answering) Do(_ context.Context, c *transport.Call) error {
	reply := oncrpc.Reply{Stat: oncrpc.Accepted}
	b := reply.Append(nil)
	for _, w := range []uint32{uint32(a.status), 0, 1, uint32(nfs4.OP_PUTFH), uint32(a.status)} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	c.Reply = transport.Message{Stream: b}
	return nil
}

// TestPutOff: a call that the server defers is repeated for two minutes. The error then says so, and only then.
func TestPutOff(t *testing.T) {
	for _, c := range []struct {
		status nfs4.Nfsstat4
		putOff bool
	}{
		{nfs4.NFS4ERR_DELAY, true},
		{nfs4.NFS4ERR_GRACE, true},
		{nfs4.NFS4ERR_SERVERFAULT, false},
	} {
		t.Run(c.status.Symbol(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				v := &client.V4{RPC: client.RPC{Requester: answering{status: c.status}}}
				_, err := v.Getattr(t.Context(), []byte("handle"))
				if !client.IsStatus(err, uint32(c.status)) || errors.Is(err, client.ErrPutOff) != c.putOff {
					t.Error(err)
				}
				if d := time.Since(begun); (d > time.Minute) != c.putOff || d > 3*time.Minute {
					t.Errorf("after %v", d)
				}
			})
		})
	}
}
