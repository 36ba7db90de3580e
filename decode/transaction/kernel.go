package transaction

import (
	"time"
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Kernel is what the kernel of one end recorded of a transaction, where its trace events are the source instead of packets. The times
// that it does not know are negative. Of the transaction, Operations, the moments of Timeline and what packets are counted in are empty then.
type Kernel struct {
	Server bool // the kernel of the responder; else that of the requester
	// Operation is the requester's name for the procedure: of a COMPOUND what it is for, such as READ. Empty if it is not known.
	Operation string
	// CallCredits, CallBytes, ReplyCredits, ReplyType and Written say that these attributes of the messages are known: in all other
	// transactions they are, in Call and Reply.
	CallCredits, CallBytes, ReplyCredits, ReplyType, Written bool

	// Outcome says that Status, of NFS, is known. Executed are the operations of a COMPOUND that the responder has executed, all of them, or
	// none if they are not known.
	Outcome  bool
	Status   uint32
	Executed []Executed

	// Of the requester. Queued is the time from the start of the task to the transmission, CreditWait the part of it without a credit,
	// Registration that from the first segment of memory to the complete header. RoundTrip lasts from the transmission to the reply,
	// Total from the start of the task to its end.
	Queued, CreditWait, Registration, RoundTrip, Total time.Duration
	Transmissions                                      int // how often the header of the call was made; 0 if not known

	// Of the responder. Wakeup is the time until a thread took up the connection, Dispatch that from the decoded header to the execution,
	// Reads of chunks included, Execution that of the program.
	Wakeup, Dispatch, Execution time.Duration
}

// Executed is an operation of a COMPOUND, and the status that it ended with.
type Executed struct{ Operation, Status uint32 }

const (
	kernelSize   = int(unsafe.Sizeof(Kernel{}))
	executedSize = int(unsafe.Sizeof(Executed{}))
)

// unknown is a Kernel that knows nothing yet.
var unknown = Kernel{Queued: -1, CreditWait: -1, Registration: -1, RoundTrip: -1, Total: -1, Wakeup: -1, Dispatch: -1, Execution: -1}

// Begin begins a transaction of which a kernel tells: Transaction.Kernel is set, and the caller fills in what it knows. client is the side
// whose forward calls are. Record, with the tag, returns the transaction for as long as it has not ended.
func (t *Tracker) Begin(c *rdma.Connection, client, from rdma.Side, xid uint32, at rdma.Ref) (*Transaction, rdma.Tag) {
	t.expire(at.Time)
	setForwardSide(c, client)
	h := t.halves.of(c, from)
	if old := h.open.get(xid); old != nil {
		t.finish(old)
	}
	tx := t.begin(h, c, from, xid)
	tx.Backward = from != client
	if tx.kernel == nil {
		tx.kernel = new(Kernel)
		t.storage.grew(tx, kernelSize)
	}
	executed := tx.kernel.Executed[:0]
	*tx.kernel = unknown
	tx.kernel.Executed = executed
	tx.Kernel = tx.kernel
	tx.Call.First, tx.Call.Last = at, at
	t.queue.put(tx)
	return tx, tx.sendTag(false)
}

// Recorded returns the transaction of a tag that Begin has returned, nil if it has ended.
func (t *Tracker) Recorded(tag rdma.Tag) *Transaction { return t.pool.entries.tagged(tag) }

// SetHeader decodes the transport header of a message of a transaction of which a kernel tells. full is its length; header may be less.
func (t *Tracker) SetHeader(tx *Transaction, m *Message, header []byte, full int) {
	before := cap(m.raw)
	m.raw = append(m.raw[:0], header...)
	t.storage.grew(tx, cap(m.raw)-before)
	m.Transport = true
	_ = m.Header.Decode(m.raw, full) // cut or whole: it was made, not received
	t.storage.listed(tx)
}

// SetExecuted notes the operations that the responder has executed for a transaction of which a kernel tells. The last one has the status of
// the COMPOUND.
func (t *Tracker) SetExecuted(tx *Transaction, all []Executed) {
	k := tx.Kernel
	before := cap(k.Executed)
	k.Executed = append(k.Executed[:0], all...)
	t.storage.grew(tx, (cap(k.Executed)-before)*executedSize)
	k.Outcome, k.Status = true, all[len(all)-1].Status
	t.storage.listed(tx)
}

// Reply notes that a transaction of which a kernel tells was answered. It ends when End says so, or some time later.
func (t *Tracker) Reply(tx *Transaction, first, last rdma.Ref) {
	tx.Reply.First, tx.Reply.Last = first, last
	t.replyOfCall(tx)
	t.expire(last.Time)
}

// End ends a transaction of which a kernel tells, unless Reply has: with a clock that jumps it may have expired at once.
func (t *Tracker) End(tx *Transaction) {
	if tx.Connection != nil {
		t.finish(tx)
	}
}

// Note adds a remark to a transaction that has not ended.
func (t *Tracker) Note(tx *Transaction, n Note) {
	tx.Note(n)
	t.storage.listed(tx)
}

// recorded is complete for a transaction of which a kernel tells.
func (t *Tracker) recorded(tx *Transaction) {
	if !tx.Reply.Seen() {
		tx.State = NoReply
	}
	t.storage.listed(tx)
}
