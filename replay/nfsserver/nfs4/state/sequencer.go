package state

import (
	"sync"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// sequencer puts the requests of an owner of NFSv4.0 in order by their seqids (RFC 7530, section
// 9.1.7).
type sequencer struct {
	mu    sync.Mutex // held from the check of a seqid until the reply is kept
	begun bool       // a seqid has been seen
	seqid uint32     // the last one
	op    uint32     // what it was used for
	reply []byte
	file  Key // the current filehandle after it
	moved bool
}

// Turn is an operation's turn in the order of an owner's requests. From NFSv4.1 on it need not
// end, since slots keep the order.
type Turn struct {
	of    *sequencer
	owner *openOwner // of OPEN
	op    uint32
	seqid uint32
}

// Client is the client whose turn it is to OPEN.
func (t Turn) Client() *Client { return t.owner.client }

// Replay is the kept reply for a repeated operation.
type Replay struct {
	Result []byte // valid until the turn ends
	File   Key    // the current filehandle to go on with
	Moved  bool   // File is set
}

// take waits for a turn and checks its seqid. It is called without the table's lock. With NFS4_OK
// and no Replay the operation is to be executed. The turn must end, but not with an error.
func (q *sequencer) take(t *Turn) (*Replay, Status) {
	q.mu.Lock()
	switch {
	case !q.begun, t.seqid == q.seqid+1:
		t.of = q
		return nil, nfs4.NFS4_OK
	case t.seqid == q.seqid && q.reply != nil && q.op == t.op:
		t.of = q
		return &Replay{Result: q.reply, File: q.file, Moved: q.moved}, nfs4.NFS4_OK
	}
	q.mu.Unlock()
	return nil, nfs4.NFS4ERR_BAD_SEQID
}

// start begins the order anew, if no request is in progress.
func (q *sequencer) start(seqid uint32) bool {
	if !q.mu.TryLock() {
		return false
	}
	q.begun, q.seqid, q.reply = true, seqid, nil
	q.mu.Unlock()
	return true
}

// idle reports whether no request is in progress.
func (q *sequencer) idle() bool {
	if q.mu.TryLock() {
		q.mu.Unlock()
		return true
	}
	return false
}

// Release ends a turn whose operation was not executed: it was a retransmission, or it failed
// with a status that does not use up the seqid.
func (t Turn) Release() {
	if t.of != nil {
		t.of.mu.Unlock()
	}
}

// End ends a turn and keeps the encoded result of the operation, from its
// status on. moved says that the operation made file the current filehandle.
func (t Turn) End(st Status, result []byte, file Key, moved bool) {
	q := t.of
	if q == nil {
		return
	}
	if counts(st) {
		q.begun, q.seqid, q.op = true, t.seqid, t.op
		q.reply = append(q.reply[:0], result...)
		q.file, q.moved = file, moved
	}
	q.mu.Unlock()
}

// counts reports whether an operation with this status uses up its seqid (RFC 7530, section
// 9.1.7).
func counts(st Status) bool {
	switch st {
	case nfs4.NFS4ERR_STALE_CLIENTID, nfs4.NFS4ERR_STALE_STATEID, nfs4.NFS4ERR_BAD_STATEID,
		nfs4.NFS4ERR_BAD_SEQID, nfs4.NFS4ERR_BADXDR, nfs4.NFS4ERR_RESOURCE,
		nfs4.NFS4ERR_NOFILEHANDLE, nfs4.NFS4ERR_MOVED:
		return false
	}
	return true
}
