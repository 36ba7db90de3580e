package decode

import "github.com/rpcrdma/toolkit/decode/memory"

// accounts is what a Decoder holds, by what can be given up.
type accounts struct {
	budget       *memory.Budget
	transactions *memory.Account // with those that are examined by another goroutine
	connections  *memory.Account // of all fabrics, with what is remembered of their calls
	fragments    *memory.Account // of IP datagrams
}

// account opens the accounts of the parts.
func (d *Decoder) account(opt *Options) {
	m := &d.memory
	m.budget = memory.NewBudget(opt.Memory)
	m.transactions = m.budget.Account(50)
	m.connections = m.budget.Account(40)
	m.fragments = m.budget.Account(10)
	m.connections.Evict = d.evictConnection
	m.fragments.Evict = func() bool {
		ok := d.frags[0].Evict() || d.frags[1].Evict()
		d.countFragments()
		return ok
	}
	opt.Transactions.Memory, opt.Transactions.Peers = m.transactions, m.connections
	opt.RoCE.Memory = m.connections
}

func (d *Decoder) countFragments() {
	d.memory.fragments.Add(d.frags[0].Memory() + d.frags[1].Memory() - d.memory.fragments.Used())
}

// perConnection estimates the memory of a connection in the transaction tracker.
const perConnection = 4 << 10

// evictConnection evicts a connection of the fabric whose connections take most memory.
func (d *Decoder) evictConnection() bool {
	roce := d.roce.Used() + perConnection*d.roce.Connections()
	tcp := d.tcp.used + perConnection*len(d.tcp.order)
	udp := d.udp.used() + perConnection*len(d.udp.order)
	ref := d.stats.Last
	for range 3 {
		switch {
		case roce > 0 && roce >= tcp && roce >= udp:
			if d.roce.Evict(ref) {
				return true
			}
			roce = 0
		case tcp > 0 && tcp >= udp:
			if d.tcp.shed(ref) {
				return true
			}
			tcp = 0
		case len(d.udp.order) > 0 && udp > 0:
			d.udp.evict(ref)
			return true
		}
	}
	return false
}
