package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// Outline is what a COMPOUND consists of: its operations by number, and where they stand. As an xdr.Skipper it
// passes over COMPOUND4args, COMPOUND4res or their callback counterparts, but it keeps what it has seen, so it must not be nil.
// What an operation contains is decoded when somebody asks for it.
type Outline struct {
	Callback bool
	Results  bool

	// Minor is the minor version of arguments, Numbers are the operations.
	Minor   uint32
	Numbers []uint32

	numbers [maxOutline]uint32
	places  [maxOutline]xdr.Place
	round   uint32 // changes with each COMPOUND
	bodies  []body // by slot
}

// body is what operations of one kind are decoded into.
type body struct {
	message xdr.Message // nil if none was asked for yet
	round   uint32
	index   int // of the operation that it holds, of that round
}

// maxOutline is how many operations an Outline has at most; Linux sends at most 16. Longer COMPOUNDs count as not passed over.
const maxOutline = 64

// Skip passes over a COMPOUND. Numbers is complete if that succeeds.
func (o *Outline) Skip(r *xdr.Reader, off uint) uint {
	o.Numbers = nil
	o.round++
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
	table := o.table()
	for i := range count {
		var number uint32
		number, off = r.SkipWord(off)
		slot := table.slot(number)
		if slot < 0 {
			return xdr.Beyond
		}
		o.numbers[i], o.places[i] = number, r.SkipPlace(off)
		if o.Results {
			off = table[slot].skipRes.Skip(r, off)
		} else {
			off = table[slot].skipArgs.Skip(r, off)
		}
	}
	o.Numbers = o.numbers[:count]
	return off
}

func (o *Outline) table() opTable {
	if o.Callback {
		return cbOps
	}
	return foreOps
}

// At is where the arguments of operation i begin in the bytes that were passed over, or its results.
func (o *Outline) At(i int) int { return o.places[i].Offset() }

// Succeeded is how many operations, from the first one on, have succeeded, by their results in the bytes that were passed over: the result of each
// begins with its status.
func (o *Outline) Succeeded(b []byte) int {
	for i, p := range o.places[:len(o.Numbers)] {
		if at := p.Offset(); [4]byte(b[at:at+4]) != [4]byte{} {
			return i
		}
	}
	return len(o.Numbers)
}

// Decode decodes the arguments of operation i, or its results. The Reader has to be Reset to the bytes that Skip has accepted, with the
// same chunks. What is returned is valid until Decode is called for an operation with the same number.
func (o *Outline) Decode(r *xdr.Reader, i int) xdr.Message {
	table := o.table()
	slot := table.slot(o.Numbers[i])
	if o.bodies == nil {
		o.bodies = make([]body, len(table))
	}
	x := &o.bodies[slot]
	if x.message == nil {
		if x.message = table[slot].newArgs(); o.Results {
			x.message = table[slot].newRes()
		}
	} else if x.round == o.round && x.index == i {
		return x.message
	}
	r.GoTo(o.places[i])
	x.message.Decode(r)
	x.round, x.index = o.round, i
	return x.message
}
