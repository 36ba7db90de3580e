package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// catalog keeps, for each program that was seen, the messages that its procedures are decoded into.
type catalog struct {
	programs map[uint64]*program
	last     *program
}

// program is one version of a program.
type program struct {
	key   uint64
	def   *xdr.Program
	procs []messages
}

// messages holds what the arguments and results of a procedure are decoded into. It is made when the procedure is first seen.
type messages struct {
	procedure    *xdr.Procedure
	args, result xdr.Message
	status       xdr.Status // result, if it holds one
	compound     bool       // both are lists of operations
	gives        bool       // result gives a file handle
	teaches      bool       // View.Learn may have use for the result
	fact         fact       // what it tells projection.learn then
	nfs3         bool       // of NFSv3
	pair         pair       // that arguments and results are

	// What passes over them, and whether that can tell the status.
	skipArgs, skipResult xdr.Skipper
	projectable          bool
	outline              *outline // of a COMPOUND
	success              string   // Status if it is not a failure
	failed               string   // Status of the newest failure that was asked for, and its number
	failure              uint32
}

// maxPrograms bounds how many program numbers are remembered.
const maxPrograms = 256

// known finds what most transactions call: a procedure of the same program as the last one, whose messages have been made; else nil.
func (c *catalog) known(tx *transaction.Transaction) *messages {
	if p := c.last; p != nil && p.key == programKey(tx.Program, tx.Version) && uint64(tx.Procedure) < uint64(len(p.procs)) {
		if m := &p.procs[tx.Procedure]; m.args != nil {
			return m
		}
	}
	return nil
}

// find finds what a transaction calls; nil is what is not known.
func (c *catalog) find(tx *transaction.Transaction) (*program, *messages) {
	p := c.last
	if p == nil || p.key != programKey(tx.Program, tx.Version) {
		if p = c.program(tx.Program, tx.Version); p == nil {
			return nil, nil
		}
	}
	if uint64(tx.Procedure) >= uint64(len(p.procs)) {
		return p, nil
	}
	m := &p.procs[tx.Procedure]
	if m.args == nil && !m.make(tx, p.def.Procedure(tx.Procedure)) {
		return p, nil
	}
	return p, m
}

func (c *catalog) program(number, version uint32) *program {
	key := programKey(number, version)
	p, ok := c.programs[key]
	if !ok {
		def := nfs.Lookup(number, version)
		if def == nil && number >= nfs4.NFS4_CALLBACK && number < 0x60000000 {
			// A callback program: the client takes a transient number.
			def = nfs.Lookup(nfs4.NFS4_CALLBACK, version)
		}
		if c.programs == nil {
			c.programs = make(map[uint64]*program)
		}
		if len(c.programs) >= maxPrograms {
			clear(c.programs)
		}
		if def != nil {
			p = &program{key: key, def: def, procs: make([]messages, len(def.Procedures))}
		}
		c.programs[key] = p
	}
	if p != nil {
		c.last = p
	}
	return p
}

func programKey(number, version uint32) uint64 { return uint64(number)<<32 | uint64(version) }

// make makes the messages of a procedure; nil is none.
func (m *messages) make(tx *transaction.Transaction, p *xdr.Procedure) bool {
	if p == nil {
		return false
	}
	m.procedure, m.args, m.result = p, p.NewArgs(), p.NewResult()
	m.status, _ = m.result.(xdr.Status)
	switch m.args.(type) {
	case *nfs4.CompoundArgs, *nfs4.CbCompoundArgs:
		m.compound = true
	}
	e := ops.Procedure(tx.Program, tx.Version, tx.Procedure)
	m.gives, m.teaches = e != nil && e.Gives.Has(ops.Handle), teaches(e, m.args)
	if m.nfs3 = tx.Program == nfs3.NFS_PROGRAM && tx.Version == nfs3.NFS_V3; m.nfs3 {
		m.fact = factOf3(tx.Procedure)
	}
	m.pair = pairOf(m.args)
	m.forProjection()
	return true
}

// forProjection sets what clean transactions need.
func (m *messages) forProjection() {
	m.success = "SUCCESS"
	if m.status != nil {
		code, symbol := m.status.StatusCode() // nothing was decoded: it is 0
		m.success = xdr.EnumString(code, symbol)
	}
	if m.compound {
		_, callback := m.args.(*nfs4.CbCompoundArgs)
		m.outline = newOutline(callback)
		m.skipArgs, m.skipResult, m.projectable = &m.outline.args, &m.outline.results, true
		return
	}
	var args, result bool
	m.skipArgs, args = m.args.(xdr.Skipper)
	m.skipResult, result = m.result.(xdr.Skipper)
	m.projectable = args && result && m.procedure.StatusFirst == (m.status != nil)
}
