package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// Outline is what a COMPOUND consists of: its operations by number, without what they contain. As an xdr.Skipper it
// passes over COMPOUND4args, COMPOUND4res or their callback counterparts, but it keeps what it has seen, so it must not be nil.
type Outline struct {
	Callback bool
	Results  bool

	// Minor is the minor version of arguments, Numbers are the operations.
	Minor   uint32
	Numbers []uint32

	numbers [maxOutline]uint32
}

// maxOutline is how many operations an Outline has at most; Linux sends at most 16. Longer COMPOUNDs count as not passed over.
const maxOutline = 64

// Skip passes over a COMPOUND. Numbers is complete if that succeeds.
func (o *Outline) Skip(r *xdr.Reader, off uint) uint {
	o.Numbers = o.numbers[:0]
	if o.Results {
		off = r.SkipOpaque(off+4, 0)
	} else {
		o.Minor, off = r.SkipWord(r.SkipOpaque(off, 0))
		if o.Callback {
			off += 4
		}
	}
	count, off := r.SkipWord(off)
	if count > maxOutline {
		return xdr.Beyond
	}
	table := foreOps
	if o.Callback {
		table = cbOps
	}
	for range count {
		var number uint32
		number, off = r.SkipWord(off)
		slot := table.slot(number)
		if slot < 0 {
			return xdr.Beyond
		}
		o.Numbers = append(o.Numbers, number)
		if o.Results {
			off = table[slot].skipRes.Skip(r, off)
		} else {
			off = table[slot].skipArgs.Skip(r, off)
		}
	}
	return off
}
