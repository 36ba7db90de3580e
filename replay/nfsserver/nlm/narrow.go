package nlm

import (
	"math"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
)

// Versions 1 and 3 have offsets of 32 bits, and fewer statuses. Their messages are turned into
// those of version 4, and back.

func widen(l *nlm.NlmLock) nlm.Nlm4Lock {
	return nlm.Nlm4Lock{CallerName: l.CallerName, Fh: l.Fh, Oh: l.Oh, Svid: l.Svid, LOffset: uint64(l.LOffset), LLen: uint64(l.LLen)}
}

// narrowLock is for ranges that came from version 1 or 3.
func narrowLock(l *nlm.Nlm4Lock) nlm.NlmLock {
	return nlm.NlmLock{CallerName: l.CallerName, Fh: l.Fh, Oh: l.Oh, Svid: l.Svid, LOffset: uint32(l.LOffset), LLen: uint32(l.LLen)}
}

func narrowTest(a *nlm.Nlm4Testargs) *nlm.NlmTestargs {
	return &nlm.NlmTestargs{Cookie: a.Cookie, Exclusive: a.Exclusive, Alock: narrowLock(&a.Alock)}
}

// narrowStat has no word for what version 4 has added: no lock can be had.
func narrowStat(s stat) nlm.NlmStats {
	if s > nlm.NLM4_DEADLCK {
		return nlm.NlmDeniedNolocks
	}
	return nlm.NlmStats(s)
}

// narrowHolder cuts a range off where versions 1 and 3 can no longer name it. A range beyond
// that is one byte at the end.
func narrowHolder(h *nlm.Nlm4Holder) nlm.NlmHolder {
	n := nlm.NlmHolder{Exclusive: h.Exclusive, Svid: h.Svid, Oh: h.Oh, LOffset: uint32(min(h.LOffset, math.MaxUint32))}
	if h.LLen != 0 && h.LLen <= math.MaxUint32 && h.LOffset+h.LLen-1 <= math.MaxUint32 {
		n.LLen = uint32(h.LLen)
	}
	return n
}
