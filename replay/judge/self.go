package judge

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// self checks a reply against itself, against its call and against earlier replies of this
// server. It needs no captured value, and nothing in a capture explains its findings.
func (j *Judge) self(v *verdict.Judgement, r *Reply) {
	if j.level != All || r.RPC != "" {
		return
	}
	h := j.history(r.Clone)
	j.handles(v, r)
	j.listed(v, r)
	// A reply with the captured times is the captured reply, played back. It fits the order of the capture, not that of this run.
	if !j.cmp.samePast() {
		j.still(v, r)
		defer j.invariants(v, r)
	}
	if r.Op.Modifies {
		for _, id := range j.load.Objects(r.Op) {
			h.changes[id]++
		}
	}
	c, ok := r.Result.(*nfs4.CompoundRes)
	if !ok {
		h.self(v, objectOf(r.Op, -1), r.Args, r.Result)
		return
	}
	a, ok := r.Args.(*nfs4.CompoundArgs)
	for i := range c.Ops {
		var args xdr.Message
		if ok && i < len(a.Ops) {
			args = a.Ops[i].Body
		}
		switch c.Ops[i].Body.(type) {
		case *nfs4.WRITE4res, *nfs4.COMMIT4res:
			h.self(v, objectOf(r.Op, i), args, c.Ops[i].Body)
		case *nfs4.SEEK4res:
			j.seek(v, r, i, args, c.Ops[i].Body)
		}
	}
}

// self checks the results of one procedure or operation on an object.
func (h *history) self(v *verdict.Judgement, object int, args, res xdr.Message) {
	if code, _ := StatusOf(res); code != 0 {
		return
	}
	switch m := res.(type) {
	case *nfs3.WRITE3res:
		if a, ok := args.(*nfs3.WRITE3args); ok && m.Resok.Committed < a.Stable {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.NotStable, Now: m.Resok.Committed.String(), Was: a.Stable.String()})
		}
		h.unstable(v, object, m.Resok.Committed == nfs3.UNSTABLE, m.Resok.Verf)
	case *nfs3.COMMIT3res:
		h.commit(v, object, m.Resok.Verf)
	case *nfs4.WRITE4res:
		if a, ok := args.(*nfs4.WRITE4args); ok && m.Resok4.Committed < a.Stable {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.NotStable, Now: m.Resok4.Committed.String(), Was: a.Stable.String()})
		}
		h.unstable(v, object, m.Resok4.Committed == nfs4.UNSTABLE4, m.Resok4.Writeverf)
	case *nfs4.COMMIT4res:
		h.commit(v, object, m.Resok4.Writeverf)
	}
}

// unstable keeps the verifier of a WRITE that needs a COMMIT. Until then all WRITEs to the file
// must return the same one.
func (h *history) unstable(v *verdict.Judgement, object int, is bool, verifier [8]byte) {
	if !is || object <= 0 {
		return
	}
	if was, ok := h.verifiers[object]; ok && was != verifier {
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.VerifierChanged})
	}
	h.verifiers[object] = verifier
}

// commit compares the verifier of a COMMIT with that of the latest WRITE to the file: a server
// that has lost nothing returns the same (RFC 1813, section 3.3.21).
func (h *history) commit(v *verdict.Judgement, object int, now [8]byte) {
	if was, ok := h.verifiers[object]; ok && was != now {
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.VerifierChanged})
	}
	delete(h.verifiers, object)
}

// seek checks the result of SEEK (RFC 7862, section 15.11): it is not before the offset, and nothing but zeros is known of what the
// server calls a hole. Which zeros are holes is up to the server.
func (j *Judge) seek(v *verdict.Judgement, r *Reply, at int, args, res xdr.Message) {
	a, ok1 := args.(*nfs4.SEEK4args)
	m, ok2 := res.(*nfs4.SEEK4res)
	if !ok1 || !ok2 || m.SaStatus != nfs4.NFS4_OK {
		return
	}
	found := m.Resok4.SrOffset
	switch {
	case found < a.SaOffset && !m.Resok4.SrEof:
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.SeeksBack, N: found, M: a.SaOffset})
	case found < a.SaOffset:
	case a.SaWhat == nfs4.NFS4_CONTENT_DATA:
		j.hole(v, r, at, a.SaOffset, found-a.SaOffset)
	case a.SaWhat == nfs4.NFS4_CONTENT_HOLE && !m.Resok4.SrEof:
		j.hole(v, r, at, found, 1)
	}
}
