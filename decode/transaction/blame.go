package transaction

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Blame says what the phases of a transaction were lost to. Options.Ended fills it
// in, if that is set to something that knows: package analyze/blame.
type Blame struct {
	// Clean says that nothing was lost: all of each phase is rdma.CauseRest's.
	Clean bool
	// Shares of the phases, by Phase and rdma.Cause. Those of a phase sum to it.
	Shares [NumParts][rdma.NumCauses]time.Duration
}

// NewBlame gives the transaction an empty Blame, and returns it.
func (t *Transaction) NewBlame() *Blame {
	if t.blame == nil {
		t.blame = new(Blame)
	}
	*t.blame = Blame{}
	t.Blame = t.blame
	return t.blame
}

// NewClean gives the transaction a Blame that says that nothing of its phases was lost.
func (t *Transaction) NewClean(p *Phases) {
	if t.blame == nil {
		t.blame = new(Blame)
	}
	b := t.blame
	if !b.Clean { // else there are no other shares
		*b = Blame{Clean: true}
	}
	b.rest(PhaseCall, p.CallTransfer)
	b.rest(PhasePull, p.ArgumentPull)
	b.rest(PhaseServer, p.Server)
	b.rest(PhasePush, p.ResultPush)
	b.rest(PhaseReply, p.ReplyTransfer)
	t.Blame = b
}

// rest sets the share of rdma.CauseRest. Most are 0, as before: what is not written stays in the caches of both processors.
func (b *Blame) rest(ph Phase, d time.Duration) {
	if s := &b.Shares[ph][rdma.CauseRest]; *s != d {
		*s = d
	}
}

// Of is the time that all phases together lost to a cause.
func (b *Blame) Of(c rdma.Cause) (sum time.Duration) {
	for i := range b.Shares {
		sum += b.Shares[i][c]
	}
	return sum
}

// Lossless reports whether nothing was lost.
func (b *Blame) Lossless() bool {
	if b.Clean {
		return true
	}
	var any time.Duration
	for ph := range b.Shares {
		for _, d := range b.Shares[ph][rdma.CauseRest+1:] {
			any |= d
		}
	}
	return any == 0
}

// Worst is the cause that most time was lost to, CauseRest if to none.
func (b *Blame) Worst() (worst rdma.Cause) {
	most := time.Duration(0)
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		if d := b.Of(c); d > most {
			worst, most = c, d
		}
	}
	return worst
}
