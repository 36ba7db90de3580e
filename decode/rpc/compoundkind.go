package rpc

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Step is an operation of a COMPOUND by name, and what became of it.
type Step struct {
	Name   string
	Number uint32
	Status string // empty if the reply does not have it
	Code   uint32
}

// kind is what the numbers of the operations of a COMPOUND say, whatever the operations contain. A client sends few combinations again and
// again, so that all of this is found once. The memory of a kind is used again for another one.
type kind struct {
	stamp     uint64 // never used again, by any View; nor with another minor version
	minor     uint32
	numbers   []uint32
	operation string // that View.OperationGroup names; empty if there is none
	tells     bool   // View.Learn may have use for the results
	targets   []target
	pairs     []paired
	// If all operations succeed, what View.Steps returns, and what View.AppendOperation appends.
	steps   []Step
	listing []byte
}

const (
	kindBits = 7
	kinds    = 1 << kindBits // that an outline remembers
)

// target is an operation that File or Learn has to look at.
type target struct {
	index  int
	number nfs4.NfsOpnum4
	entry  *ops.Entry
	does   what
	form   form
}

// what of an operation has to be read.
type what uint8

const (
	takes what = 1 << iota // its arguments, for File
	gives                  // the file handle that it results in
	tells                  // its arguments or results, for Learn
)

// kindStamps counts the kinds.
var kindStamps atomic.Uint64

func (s *kind) set(minor uint32, numbers []uint32, callback bool) {
	s.stamp, s.minor = kindStamps.Add(1), minor
	s.numbers, s.targets, s.steps, s.pairs = append(s.numbers[:0], numbers...), s.targets[:0], s.steps[:0], s.pairs[:0]
	s.tells, s.operation = false, ""
	top := noise
	success := xdr.EnumString(uint32(nfs4.NFS4_OK), nfs4.NFS4_OK.Symbol())
	for i, n := range numbers {
		name := opName(n, callback)
		if w := weighNumber(n, callback); i == 0 || w > top || top == noise && w == noise {
			s.operation, top = name, w
		}
		s.steps = append(s.steps, Step{Name: name, Number: n, Status: success})
		if p := pairOf4(n, callback); p != unpaired {
			s.pairs = append(s.pairs, paired{i, p})
		}
		e := entryOf(n, callback)
		if e == nil {
			continue
		}
		x := target{index: i, number: nfs4.NfsOpnum4(n), entry: e, form: formOf(nfs4.NfsOpnum4(n))}
		if e.HasPlaces() {
			x.does |= takes
		}
		if !callback {
			x.add()
		}
		if x.does != 0 || e.Effect != ops.Keeps {
			s.targets = append(s.targets, x)
		}
		s.tells = s.tells || x.does&(gives|tells) != 0
	}
	s.listing = appendSteps(s.listing[:0], s.steps, callback)
}

// add adds what Learn needs of an operation, and where a file handle is in its results.
func (a *target) add() {
	if a.entry.Gives.Has(ops.Handle) {
		a.does |= gives
	}
	switch a.number {
	case nfs4.OP_REMOVE, nfs4.OP_RENAME, nfs4.OP_READDIR:
		a.does |= tells
	}
}

func opName(number uint32, callback bool) string {
	if callback {
		return nfs4.CbOpName(number)
	}
	return nfs4.OpName(number)
}

// compoundKind caches View.CompoundKind; it is 0 unless the call is a COMPOUND.
func (b *projection) compoundKind() uint64 {
	if !b.Compound {
		return 0
	}
	return b.kind.stamp
}

// listed is View.Steps. It belongs to the projection.
func (b *projection) listed(tx *transaction.Transaction) []Step {
	s, done := b.kind, b.good
	if done == len(s.steps) {
		return s.steps
	}
	b.steps = append(b.steps[:0], s.steps...)
	o := &b.messages.outline.results
	for i := done; i < len(b.steps); i++ {
		x := &b.steps[i]
		if x.Status = ""; i < len(o.Numbers) {
			x.Code = binary.BigEndian.Uint32(tx.Reply.Payload[o.At(i):])
			x.Status = xdr.EnumString(x.Code, nfs4.Nfsstat4(x.Code).Symbol())
		}
	}
	return b.steps
}
