package kernel

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// sumKey is what transactions are summed up by for the comparison with
// mountstats. The procedure is the kernel's where a trace has the call;
// otherwise compound holds the operations of a COMPOUND, from which the
// kernel's procedure is to be guessed.
type sumKey struct {
	client, server uint16
	version        uint32
	minor          uint32
	rdma           bool
	named          bool
	procedure      uint16 // in sums.words; or the operations, separated by blanks
}

// sum is what the transactions of one kind come to.
type sum struct {
	calls     uint64 // with another XID each
	sent      uint64 // transactions
	sentBytes uint64
	recvBytes uint64
	failed    uint64
	unread    uint64 // of which nobody can say whether they have failed
	whole     uint64
	partial   uint64 // of which the capture lacks something: bytes and failures are as far as it has them
	total     int64  // ns, of whole ones
	min, max  int64
}

type unnamedKey struct {
	server netip.Addr
	rdma   bool
}

type openKey struct {
	client uint16
	xid    uint32
}

// sums are bounded: NFS only, and limits on keys and on calls without a reply.
type sums struct {
	by      map[sumKey]*sum
	unnamed map[unnamedKey]uint64 // transactions whose program is not known
	open    map[openKey]bool      // calls without a reply: the next one with the XID is the same call
	words   names[string]
	scratch []byte
}

// word gives a number to a text; false if there are too many.
func (s *sums) word(b []byte) (uint16, bool) {
	if i, ok := s.words.at[string(b)]; ok {
		return i, true
	}
	i := s.words.number(string(b))
	return i, i != 0
}

// maxUnknown bounds the servers of transactions without a program.
const maxUnknown = 4096

// unknown counts a transaction whose program the capture does not show.
func (s *sums) unknown(k unnamedKey) {
	if _, ok := s.unnamed[k]; ok || len(s.unnamed) < maxUnknown {
		s.unnamed[k]++
	}
}

// isRDMA reports whether a transaction came over RDMA.
func isRDMA(tx *transaction.Transaction) bool {
	f := tx.Connection.Fabric
	return f != rdma.TCP && f != rdma.UDP
}

// sentBytes is the size of a call as the kernel counts it: over TCP with its record mark (RFC 5531, section 11).
func sentBytes(tx *transaction.Transaction) uint64 {
	if tx.Connection.Fabric == rdma.TCP && tx.Call.Seen() {
		return tx.Call.Bytes + 4
	}
	return tx.Call.Bytes
}

const nfsProgram = 100003

// sum adds a transaction of NFS. name is the operation that a client's trace
// has for its XID; 0 if none.
func (j *Join) sum(v *rpc.View, name uint16) {
	tx := v.Tx
	if !tx.Named {
		j.sums.unknown(unnamedKey{tx.Server().Addr.Unmap(), isRDMA(tx)})
		return
	}
	if tx.Program != nfsProgram {
		return
	}
	k := sumKey{
		client: j.addrs.number(tx.Client().Addr.Unmap()), server: j.addrs.number(tx.Server().Addr.Unmap()), version: tx.Version,
	}
	k.rdma = isRDMA(tx)
	k.minor, _ = v.MinorVersion()
	b := j.sums.scratch[:0]
	if o := j.names.value(name); o.program == "nfs" && o.version == tx.Version {
		k.named = true
		b = append(b, o.name...)
	} else if ops := v.Steps(); len(ops) > 0 {
		for i := range ops {
			if len(b) > 1024 { // no COMPOUND of Linux
				break
			}
			b = append(b, ops[i].Name...)
			b = append(b, ' ')
		}
		if v.MoreOperations() {
			b = append(b, '?') // so that they are not taken for a procedure of the client
		}
	} else {
		k.named = tx.Version != 4 || tx.Procedure == 0
		b = append(b, v.ProcedureName()...)
	}
	j.sums.scratch = b
	var ok bool
	if k.procedure, ok = j.sums.word(b); !ok {
		j.counts.SumsBeyond++
		return
	}
	s := j.sums.by[k]
	if s == nil {
		if len(j.sums.by) >= maxWireKeys {
			j.counts.SumsBeyond++
			return
		}
		s = &sum{min: 1<<63 - 1}
		j.sums.by[k] = s
	}
	id := openKey{k.client, tx.XID}
	again := j.sums.open[id]
	if again {
		delete(j.sums.open, id)
	}
	if !tx.Reply.Seen() && len(j.sums.open) < maxOpen {
		j.sums.open[id] = true
	}
	if !again {
		s.calls++
	}
	s.sent++
	s.sentBytes += sentBytes(tx)
	s.recvBytes += tx.Reply.Bytes
	if v.Failed() {
		s.failed++
	} else if v.Unread() {
		s.unread++
	}
	if tx.State != transaction.Complete {
		s.partial++
	}
	if p, ok := tx.Phases(); ok && tx.State != transaction.NoReply {
		s.whole++
		n := int64(p.Total)
		s.total += n
		s.min, s.max = min(s.min, n), max(s.max, n)
	}
}
