package iwarp

import "github.com/rpcrdma/toolkit/decode/iwarp"

// read is an RDMA Read of ours that waits for its response. Responses arrive in the order
// of the requests (RFC 5040, section 5.5).
type read struct {
	entry uint64
	ready bool // it is the ready-to-receive message, not a request of the user
	stag  uint32
	len   int
	got   int
}

// readQueue holds our Reads under way, at most as many as the peer answers at a time.
type readQueue struct {
	ring [2 * maxReads]read
	head int
	n    int
}

func (q *readQueue) push(r read) {
	q.ring[(q.head+q.n)%len(q.ring)] = r
	q.n++
}

func (q *readQueue) oldest() *read { return &q.ring[q.head] }

func (q *readQueue) pop() {
	q.head = (q.head + 1) % len(q.ring)
	q.n--
}

// response is a Read Request of the peer that has to be answered.
type response struct {
	region   *region // nil for a Read of zero bytes
	mem      []byte
	sinkSTag uint32
	sinkTO   uint64
	refused  refusal
	request  offender
}

// offender is what a Terminate contains of the message that was wrong.
type offender struct {
	header [iwarp.UntaggedLen]byte
	n      int // of header
	length uint16
	read   [iwarp.ReadRequestLen]byte
	isRead bool
}

// responseQueue holds the Reads of the peer. Those before next are being answered.
type responseQueue struct {
	ring             []response
	head, next, tail uint64
}

func (q *responseQueue) at(i uint64) *response { return &q.ring[i%uint64(len(q.ring))] }

func (q *responseQueue) pop() {
	r := q.at(q.head)
	if r.region != nil {
		r.region.responses.Add(-1)
	}
	r.region, r.mem = nil, nil
	q.head++
}

func (q *responseQueue) clear() {
	for q.head < q.tail {
		q.pop()
	}
	q.next = q.tail
}
