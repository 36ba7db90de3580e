// Package playback answers calls from a capture: it repeats a server's replies to a workload,
// as fast as the server was, or faster.
//
// # Matching
//
// A call is answered with the reply to a captured call of the same program, version and
// procedure that was not used before, the earliest first, from whichever client. Calls are
// compared in three degrees, one after the other:
//
//   - the arguments are equal except for the contents of data items: of a WRITE only the
//     number of bytes is compared;
//   - they are equal except for SEQUENCE, which depends on the session's slots;
//   - they are equal except for what clients make up each time: verifiers,
//     owners, client and session IDs, sequence numbers, state IDs, times,
//     callback addresses, tags, and the sizes that READDIR asks for.
//
// XID, credential and verifier of the call do not matter. If all equal calls have been used,
// the last reply is repeated. If there is none, Options.Fallback gets the call. Without a
// Fallback, NULL succeeds, programs and versions that the capture lacks are unavailable, and
// everything else gets SYSTEM_ERR, which no client takes for the answer of a working server.
//
// # Replies
//
// A reply has the XID of the call, and in NFSv4.1 the slot and sequence number of
// its SEQUENCE; otherwise it is as captured, including file handles and state IDs. Data that
// the capture lacks (a snap length, lost packets) is zero. Replies that lack anything else
// are left out, and so are calls without a reply, encrypted calls, and calls of servers to
// clients.
package playback

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Limits bound a Recording. Zero fields take the defaults.
type Limits struct {
	Records int // captured calls (1 Mi)
	// Bytes that replies, their data and what finds them take (1 GiB). Beyond it,
	// data is kept as zeros, and calls whose replies do not fit are left out.
	Bytes int64
	// Memory is how many bytes the decoder may hold while the capture is read:
	// decode.Options.Memory.
	Memory int
}

// Counts sums up the transactions of a capture.
type Counts struct {
	Records  int   // calls that can be answered
	Bytes    int64 // kept
	Missing  int64 // bytes of data that the capture does not have, or for which there was no room
	Cut      int   // left out since call or reply is not whole
	NoReply  int   // left out since there is no reply
	Opaque   int   // left out since they are encrypted
	Backward int   // calls of servers, left out
	Full     int   // left out for lack of room
}

// Recording holds a server's replies from a capture. Add fills it; then any number of
// Handlers can use it.
type Recording struct {
	limits Limits
	counts Counts
	seed   maphash.Seed
	view   rpc.View

	held    int64 // bytes, of Limits.Bytes
	records []*record
	// index holds the records by the digests of their calls, in the order of
	// the capture.
	index    [degrees]map[uint64][]*record
	programs map[uint32]versions
}

type versions struct{ low, high uint32 }

// record is a captured call with its reply.
type record struct {
	number  int
	service time.Duration
	stream  []byte // of the reply, without the bytes of items
	items   []item
	// sequence is where in the stream the results of SEQUENCE are; 0 if there
	// are none.
	sequence int
}

// item is an eligible item of a reply.
type item struct {
	position uint32 // in the whole message
	data     []byte // shorter than length if the rest is zero
	length   int
}

// NewRecording makes an empty Recording.
func NewRecording(l Limits) *Recording {
	if l.Records == 0 {
		l.Records = 1 << 20
	}
	if l.Bytes == 0 {
		l.Bytes = 1 << 30
	}
	r := &Recording{limits: l, seed: maphash.MakeSeed(), programs: map[uint32]versions{}}
	for i := range r.index {
		r.index[i] = map[uint64][]*record{}
	}
	return r
}

// Load fills a Recording from a capture.
func Load(c capture.Reader, l Limits) (*Recording, error) {
	r := NewRecording(l)
	d := decode.New(decode.Options{Memory: l.Memory, Transactions: transaction.Options{KeepData: true}}, r.Add)
	err := d.Run(c)
	d.Flush()
	return r, err
}

// Counts returns what is in the Recording, and what was left out.
func (r *Recording) Counts() Counts { return r.counts }

// ServiceTime is the sum of the service times of all calls.
func (r *Recording) ServiceTime() time.Duration {
	sum := time.Duration(0)
	for _, rec := range r.records {
		sum += rec.service
	}
	return sum
}

// Add takes a transaction; they come in the order of their calls. The Decoder
// must keep data (transaction.Options.KeepData), or all data is zero.
func (r *Recording) Add(tx *transaction.Transaction) {
	switch {
	case tx.Backward:
		r.counts.Backward++
		return
	case !tx.Call.Seen() || !tx.Reply.Seen():
		r.counts.NoReply++
		return
	}
	v := &r.view
	v.SetAll(tx)
	if v.CallErr != nil || v.ReplyErr != nil {
		r.counts.Cut++
		return
	}
	if v.CallBody().Kind != oncrpc.BodyPlain || v.Reply().Succeeded() && v.ReplyBody().Kind != oncrpc.BodyPlain {
		r.counts.Opaque++
		return
	}
	rec, ok := r.reply(v)
	var keys [degrees]uint64
	if ok {
		ok = r.callKeys(v, &keys)
	}
	if !ok {
		r.counts.Cut++
		return
	}
	if len(r.records) >= r.limits.Records || !r.keep(rec) {
		r.counts.Full++
		return
	}
	if p, ok := tx.Phases(); ok && p.Divided() {
		rec.service = p.Server
	}
	for degree, key := range keys {
		r.index[degree][key] = append(r.index[degree][key], rec)
	}
	known, ok := r.programs[tx.Program]
	if !ok {
		known = versions{tx.Version, tx.Version}
	}
	r.programs[tx.Program] = versions{min(known.low, tx.Version), max(known.high, tx.Version)}
}

// recordSize is the size of a record without its stream and data, with its places in the
// index.
const recordSize = 500

// itemSize is the size of an item without its data.
const itemSize = 40

// keep copies what a record has of the transaction; false if there is no room for
// it.
func (r *Recording) keep(rec *record) bool {
	size := int64(recordSize + len(rec.stream) + itemSize*len(rec.items))
	for i := range rec.items {
		it := &rec.items[i]
		if len(it.data) > 0 && (it.length > len(zeros) || r.held+size+int64(it.length) <= r.limits.Bytes) || it.length > len(zeros) {
			size += int64(it.length)
		} else {
			it.data = nil
		}
	}
	if r.held+size > r.limits.Bytes {
		return false
	}
	r.held += size
	rec.stream = append([]byte(nil), rec.stream...)
	rec.items = append([]item(nil), rec.items...)
	r.counts.Bytes += int64(len(rec.stream))
	for i := range rec.items {
		it := &rec.items[i]
		r.counts.Missing += int64(it.length - len(it.data))
		if len(it.data) == 0 && it.length <= len(zeros) {
			it.data = zeros[:it.length:it.length]
			continue
		}
		// With the missing end, so that it can be sent as it is.
		data := make([]byte, it.length)
		copy(data, it.data)
		it.data = data
		r.counts.Bytes += int64(len(data))
	}
	rec.number = len(r.records)
	r.records = append(r.records, rec)
	r.counts.Records++
	return true
}

// zeros stand for unknown data.
var zeros [1 << 20]byte

// reply makes a record of a reply; its memory is still the transaction's. False
// if it is not whole.
func (r *Recording) reply(v *rpc.View) (*record, bool) {
	m := &v.Tx.Reply
	rec := &record{}
	whole := len(m.Payload) == m.PayloadLength
	if v.Result() == nil {
		// Nothing of it can travel apart: a failure, or an unknown program.
		rec.stream = m.Payload
		return rec, whole && len(m.Payload) >= 4
	}
	if !r.split(v, rec) {
		return nil, false
	}
	if at, ok := sequenceResult(v); ok && at+sequenceSize <= len(rec.stream) {
		rec.sequence = at
	}
	return rec, true
}

// setXID replaces the XID of a message.
func setXID(b []byte, xid uint32) { binary.BigEndian.PutUint32(b, xid) }
