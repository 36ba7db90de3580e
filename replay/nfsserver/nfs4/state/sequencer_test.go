package state

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Requests of an owner are executed in order; the last one is answered again.
func TestSequencer(t *testing.T) {
	q := &sequencer{}
	const open, closing = uint32(nfs4.OP_OPEN), uint32(nfs4.OP_CLOSE)
	for i, c := range []struct {
		seqid, op uint32
		want      Status // of take
		repeated  string
		result    Status // that the operation ends with
	}{
		{5, open, nfs4.NFS4_OK, "", nfs4.NFS4_OK}, // the first one has any seqid
		{5, open, nfs4.NFS4_OK, "ok", 0},
		{5, closing, nfs4.NFS4ERR_BAD_SEQID, "", 0}, // another operation
		{7, closing, nfs4.NFS4ERR_BAD_SEQID, "", 0},
		{6, closing, nfs4.NFS4_OK, "", nfs4.NFS4ERR_STALE_STATEID}, // does not count
		{6, closing, nfs4.NFS4_OK, "", nfs4.NFS4ERR_DENIED},
		{6, closing, nfs4.NFS4_OK, "denied", 0},
	} {
		turn := Turn{op: c.op, seqid: c.seqid}
		r, st := q.take(&turn)
		if st != c.want || (r != nil) != (c.repeated != "") {
			t.Fatalf("%d: %s, replay %v", i, st, r)
		}
		switch {
		case st != nfs4.NFS4_OK:
		case q.idle():
			t.Errorf("%d: idle during a turn", i)
		case r != nil:
			if string(r.Result) != c.repeated || r.File != (Key{ID: 7}) || !r.Moved {
				t.Errorf("%d: %q %v", i, r.Result, r.File)
			}
			turn.Release()
		default:
			turn.End(c.result, []byte(map[Status]string{nfs4.NFS4_OK: "ok", nfs4.NFS4ERR_DENIED: "denied"}[c.result]), Key{ID: 7}, true)
		}
	}
	if !q.start(40) || !q.idle() {
		t.Error("busy after all turns")
	}
	if _, st := q.take(&Turn{seqid: 40, op: closing}); st != nfs4.NFS4ERR_BAD_SEQID {
		t.Errorf("the reply before the start is repeated: %s", st)
	}
	turn := Turn{seqid: 41}
	if _, st := q.take(&turn); st != nfs4.NFS4_OK || q.start(50) {
		t.Errorf("%s, started anew during a turn", st)
	}
}
