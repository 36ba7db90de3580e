package transaction

import "github.com/rpcrdma/toolkit/decode/memory"

// pool keeps the memory of transactions that are over for others.
type pool struct {
	memory  *memory.Account
	entries entries
	free    []*Transaction
	bytes   int // held by those in free
}

// clear gives back all that is kept. It reports false if there is nothing.
func (p *pool) clear() bool {
	if len(p.free) == 0 {
		return false
	}
	for i, tx := range p.free {
		p.entries.drop(tx)
		p.free[i] = nil
	}
	p.memory.Add(-p.bytes)
	p.free, p.bytes = p.free[:0], 0
	return true
}

// take returns an unused transaction.
func (p *pool) take() *Transaction {
	if n := len(p.free); n > 0 {
		tx := p.free[n-1]
		p.free[n-1] = nil
		p.free = p.free[:n-1]
		p.bytes -= tx.size
		tx.empty = false
		return tx
	}
	tx := new(Transaction)
	p.entries.add(tx)
	tx.size = structSize
	p.memory.Add(structSize)
	return tx
}

// recycle keeps a transaction's memory for another one.
func (p *pool) recycle(tx *Transaction) {
	tx.gen = 0 // tags that still point here are stale
	if !tx.empty {
		tx.Release()
	}
	if len(p.free) >= maxFree || p.bytes+tx.size > p.memory.Limit()/8 || !p.memory.Fits(tx.size) {
		p.entries.drop(tx)
		return
	}
	p.bytes += tx.size
	p.memory.Add(tx.size)
	p.free = append(p.free, tx)
}
