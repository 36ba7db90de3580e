package check

import (
	"errors"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/units"
)

// items collects the data items of a message that are eligible for direct data placement: those that the
// codecs read with xdr.Reader.Data.
type items struct{ list []xdr.Data }

// maxItems bounds the items of one message that are examined.
const maxItems = 1024

func (w *items) of(m xdr.Message) []xdr.Data {
	w.list = w.list[:0]
	if m != nil {
		m.Walk(w)
	}
	return w.list
}

// Data implements xdr.Visitor.
func (w *items) Data(_ string, d xdr.Data) {
	if len(w.list) < maxItems {
		w.list = append(w.list, d)
	}
}

// The rest of xdr.Visitor.
func (w *items) Begin(string, string, int)    {}
func (w *items) End()                         {}
func (w *items) Uint(string, uint64)          {}
func (w *items) Int(string, int64)            {}
func (w *items) Bool(string, bool)            {}
func (w *items) Enum(string, uint32, string)  {}
func (w *items) Flags(string, uint64, string) {}
func (w *items) Bytes(string, []byte)         {}
func (w *items) String(string, []byte)        {}
func (w *items) Time(string, int64, uint32)   {}

// readableArgs reports whether the arguments can be judged, and if not, why. A decoding error that the chunks
// may have caused does not prevent it.
func (t *txCheck) readableArgs() (Reason, bool) {
	v := t.v
	switch {
	case v.CallErr != nil || v.Args() == nil && v.Procedure != nil && v.Wrapped() == "":
		return Cut, false
	case v.Args() == nil || v.Wrapped() != "":
		return Protected, false
	case v.ArgsCut:
		return Cut, false
	}
	return 0, true
}

// arguments checks the Read chunks that replace arguments.
func (t *txCheck) arguments() {
	c := t.c
	chunks := t.call.ReadChunks()
	if len(chunks) > 0 && chunks[0].Position == 0 {
		chunks = chunks[1:]
	}
	if len(chunks) == 0 || t.misplaced || t.call.Type == rpcrdma.TypeMsg && t.call.PayloadLength&3 != 0 {
		return
	}
	if why, ok := t.readableArgs(); !ok {
		c.skip(ruleArgumentNotEligible, why)
		c.skip(ruleReadChunkLength, why)
		c.skip(ruleReadChunkPad, why)
		return
	}
	args := t.args.of(t.v.Args())
	removed := uint32(0)
	for i := range chunks {
		ch := &chunks[i]
		var item *xdr.Data
		for j := range args {
			if args[j].Chunk == i+1 {
				item = &args[j]
			}
		}
		if item == nil {
			if t.failedBefore(ch.Position, removed) {
				c.skip(ruleArgumentNotEligible, Undecodable)
				c.skip(ruleReadChunkLength, Undecodable)
				return
			}
			if t.tooLong(ch, removed) {
				t.breach(ruleReadChunkLength, aboutCall, func() (string, string) {
					return "a chunk as long as the item", fmt.Sprintf("%d bytes, less than the item", ch.Length)
				})
				return
			}
			t.breach(ruleArgumentNotEligible, aboutCall, func() (string, string) {
				return "an eligible argument at the position of each Read chunk", fmt.Sprintf("%d bytes at position %d", ch.Length, ch.Position)
			})
			if t.reply != nil && t.reply.Type <= rpcrdma.TypeMsgP && t.v.ReplyErr == nil {
				if t.broken(ruleViolationAccepted, t.v.Reply().Succeeded()) {
					t.breach(ruleViolationAccepted, aboutReply, func() (string, string) { return "GARBAGE_ARGS or ERR_CHUNK", t.v.Status() })
				}
			}
			return
		}
		removed += (item.Length + 3) &^ 3
		n, padded := uint64(item.Length), (uint64(item.Length)+3)&^3
		c.ok(ruleArgumentNotEligible)
		switch ch.Length {
		case n:
			c.ok(ruleReadChunkLength)
			c.ok(ruleReadChunkPad)
		case padded:
			c.ok(ruleReadChunkLength)
			t.breach(ruleReadChunkPad, aboutCall, func() (string, string) {
				return fmt.Sprintf("%d bytes, as the item", n), fmt.Sprintf("%d bytes", ch.Length)
			})
		default:
			t.breach(ruleReadChunkLength, aboutCall, func() (string, string) {
				return fmt.Sprintf("%d bytes, as the item", n), fmt.Sprintf("%d bytes", ch.Length)
			})
		}
	}
}

// failedBefore reports whether decoding of the arguments failed before the position of a chunk, for an
// unrelated reason.
func (t *txCheck) failedBefore(position, removed uint32) bool {
	var e *xdr.Error
	return errors.As(t.v.ArgsErr, &e) && uint64(t.v.CallBody().Offset)+uint64(e.Offset)+4+uint64(removed) < uint64(position)
}

// tooLong reports whether decoding of the arguments failed because the item that a chunk replaces is longer
// than the chunk.
func (t *txCheck) tooLong(ch *rpcrdma.ReadChunk, removed uint32) bool {
	var e *xdr.Error
	if !errors.As(t.v.ArgsErr, &e) || e.Kind != xdr.Range ||
		uint32(t.v.CallBody().Offset+e.Offset)+4+removed != ch.Position {
		return false
	}
	b := t.v.CallBody().Data
	return e.Offset >= 0 && e.Offset+4 <= len(b) && uint64(be32(b[e.Offset:])) > ch.Length
}

// eligible describes what a call may return in Write chunks: the number of items, whether there may be more,
// and the maximum length of the first few.
type eligible struct {
	n     int
	open  bool
	sizes [4]uint32 // 0 if unknown
}

func (e *eligible) add(size uint32) {
	if e.n < len(e.sizes) {
		e.sizes[e.n] = size
	}
	e.n++
}

func (t *txCheck) eligible() (e eligible) {
	tx := t.tx
	a, ok := t.v.Args().(*nfs4.CompoundArgs)
	if !ok {
		t.items(&e, ops.Procedure(tx.Program, tx.Version, tx.Procedure), t.v.Args())
		return e
	}
	for i := range a.Ops {
		t.items(&e, ops.Operation(a.Ops[i].Number), a.Ops[i].Body)
	}
	return e
}

// items adds those of a procedure or operation.
func (t *txCheck) items(e *eligible, entry *ops.Entry, args xdr.Message) {
	if entry == nil || args == nil {
		return
	}
	switch entry.Reply.Items {
	case ops.OneItem:
		size := uint32(0)
		if entry.Reply.Item != "" {
			entry.Act(args, &t.act)
			size = uint32(t.act.Count)
		}
		e.add(size)
	case ops.ManyItems:
		e.add(0)
		e.open = true
	}
}

// offeredWrites judges the Write list that a call offers.
func (t *txCheck) offeredWrites() {
	h, c := t.call, t.c
	if len(h.Writes) == 0 {
		c.ok(ruleWriteListNeedless)
		return
	}
	if why, ok := t.readableArgs(); !ok || t.v.ArgsErr != nil {
		if ok {
			why = Undecodable
		}
		for _, r := range [...]id{ruleWriteListNeedless, ruleWriteChunksTooMany, ruleWriteChunkTooSmall, ruleWriteChunkPad} {
			c.skip(r, why)
		}
		return
	}
	e := t.eligible()
	offered := 0
	for _, w := range h.Writes {
		if len(w) > 0 {
			offered++
		}
	}
	switch {
	case offered > 0 && e.n == 0:
		t.breach(ruleWriteListNeedless, aboutCall, func() (string, string) { return "an empty Write list", h.Key() })
		return
	case len(h.Writes) > e.n && !e.open:
		t.breach(ruleWriteChunksTooMany, aboutCall, func() (string, string) {
			return fmt.Sprintf("at most %d", e.n), fmt.Sprintf("%d Write chunks", len(h.Writes))
		})
	default:
		c.ok(ruleWriteListNeedless)
		c.ok(ruleWriteChunksTooMany)
	}
	for i, w := range h.Writes {
		if i >= min(e.n, len(e.sizes)) || len(w) == 0 || e.sizes[i] == 0 || e.open {
			continue
		}
		want, have := uint64(e.sizes[i]), w.Length()
		if t.broken(ruleWriteChunkTooSmall, have < want) {
			t.breach(ruleWriteChunkTooSmall, aboutCall, func() (string, string) {
				return fmt.Sprintf("at least %d bytes", want), fmt.Sprintf("%d bytes", have)
			})
		}
		if want&3 == 0 {
			continue
		}
		if extra := have - want; have > want && extra <= 4 {
			known := ""
			if w[len(w)-1].Length == 4 && len(w) > 1 {
				known = rules[ruleWriteChunkPad].Known
			}
			t.known(ruleWriteChunkPad, aboutCall, known, func() (string, string) {
				return fmt.Sprintf("%d bytes", want), fmt.Sprintf("%d bytes in %d segments", have, len(w))
			})
		} else {
			c.ok(ruleWriteChunkPad)
		}
	}
}

// returnedWrites checks the Write list of a reply.
func (t *txCheck) returnedWrites() {
	h, r, c := t.call, t.reply, t.c
	if len(h.Writes) == 0 && len(r.Writes) == 0 {
		return
	}
	if len(h.Writes) != len(r.Writes) {
		t.breach(ruleWriteListCount, aboutReply, func() (string, string) {
			return units.Plural(len(h.Writes), "Write chunk"), units.Plural(len(r.Writes), "Write chunk")
		})
		return
	}
	c.ok(ruleWriteListCount)
	sound := true
	for i, w := range r.Writes {
		sound = t.returned(h.Writes[i], w) && sound
	}
	if sound {
		t.results()
	}
}

// returned checks one Write chunk.
func (t *txCheck) returned(offered, w rpcrdma.WriteChunk) bool {
	c := t.c
	switch {
	case len(offered) == 0 && len(w) != 0:
		t.breach(ruleEmptyChunkUsed, aboutReply, func() (string, string) { return "an empty Write chunk", units.Plural(len(w), "segment") })
		return false
	case len(offered) == 0:
		c.ok(ruleEmptyChunkUsed)
		return true
	case len(w) == 0:
		t.breach(ruleUnusedEmpty, aboutReply, func() (string, string) { return units.Plural(len(offered), "segment") + " of length 0", "no segments" })
		return false
	case len(w) != len(offered):
		t.breach(ruleWriteSegmentCount, aboutReply, func() (string, string) { return units.Plural(len(offered), "segment"), units.Plural(len(w), "segment") })
		return false
	}
	c.ok(ruleUnusedEmpty)
	c.ok(ruleWriteSegmentCount)
	return t.sameSegments(ruleWriteSegmentChanged, offered, w)
}

// sameSegments checks that segments were copied unchanged, and filled in order.
func (t *txCheck) sameSegments(r id, offered, used rpcrdma.WriteChunk) bool {
	full := true
	for i := range used {
		a, b := &offered[i], &used[i]
		if a.Handle != b.Handle || a.Offset != b.Offset || b.Length > a.Length {
			t.breach(r, aboutReply, func() (string, string) { return describe(a) + " or less", describe(b) })
			return false
		}
		if !full && b.Length > 0 {
			t.breach(ruleChunkHole, aboutReply, func() (string, string) {
				return "no bytes behind a segment that is not full", fmt.Sprintf("%d bytes in segment %d", b.Length, i)
			})
			return false
		}
		full = full && b.Length == a.Length
	}
	t.c.ok(r)
	t.c.ok(ruleChunkHole)
	return true
}

// results checks the results against the Write chunks.
func (t *txCheck) results() {
	h, r, c, v := t.call, t.reply, t.c, t.v
	of := [...]id{ruleWriteChunkIgnored, ruleResultNotEligible, ruleWrittenLength, rulePadWritten, ruleUnusedNotZero}
	skip := func(why Reason) {
		for _, x := range of {
			c.skip(x, why)
		}
	}
	var list []xdr.Data
	switch {
	case v.Wrapped() != "" || v.Program == nil || v.Procedure == nil:
		skip(Protected)
		return
	case v.ReplyErr != nil || v.CallErr != nil || v.ResultCut:
		skip(Cut)
		return
	case v.ResultErr != nil:
		if t.shortOfResult() {
			t.breach(ruleWrittenLength, aboutReply, func() (string, string) {
				return "a Write chunk as long as the item", fmt.Sprintf("%d bytes, less than the item", t.used())
			})
			return
		}
		skip(Undecodable)
		return
	case t.succeeded():
		list = t.result.of(v.Result())
	}
	for i, w := range r.Writes {
		n := w.Length()
		var item *xdr.Data
		if i < len(list) {
			item = &list[i]
		}
		switch {
		case item != nil && item.Chunk == i+1:
			t.written(i, uint64(item.Length), n)
		case item != nil:
			if t.broken(ruleWriteChunkIgnored, item.Length > 0 && len(h.Writes[i]) > 0) {
				t.breach(ruleWriteChunkIgnored, aboutReply, func() (string, string) {
					return "the result in the Write chunk", units.Plural(int(item.Length), "byte") + " inline"
				})
			}
		case n == 0:
			c.ok(ruleUnusedNotZero)
			c.ok(ruleResultNotEligible)
		case t.moved(i) > 0:
			t.breach(ruleResultNotEligible, aboutReply, func() (string, string) {
				return "no bytes in Write chunks", units.Plural(int(n), "byte") + " in a Write chunk; the result has no eligible item for it"
			})
		default:
			t.breach(ruleUnusedNotZero, aboutReply, func() (string, string) {
				return "segments of length 0", units.Plural(int(n), "byte") + "; none were written"
			})
		}
	}
}

// written compares the length of an item with the length of its Write chunk.
func (t *txCheck) written(i int, length, n uint64) {
	switch {
	case n == length:
		t.c.ok(ruleWrittenLength)
		t.c.ok(rulePadWritten)
	case n == (length+3)&^3 && length > 0:
		t.breach(rulePadWritten, aboutReply, func() (string, string) { return units.Plural(int(length), "byte"), units.Plural(int(n), "byte") })
	case length == 0 && t.moved(i) == 0:
		t.breach(ruleUnusedNotZero, aboutReply, func() (string, string) { return "segments of length 0", units.Plural(int(n), "byte") })
	default:
		t.breach(ruleWrittenLength, aboutReply, func() (string, string) {
			return units.Plural(int(length), "byte") + ", as the item", units.Plural(int(n), "byte")
		})
	}
}

// shortOfResult reports whether decoding of the results failed because an item is longer than what was
// written to the Write chunks, although not longer than the chunks as offered.
func (t *txCheck) shortOfResult() bool {
	var e *xdr.Error
	b := t.v.ReplyBody().Data
	used := t.used()
	if used == 0 || !errors.As(t.v.ResultErr, &e) || e.Kind != xdr.Range || e.Offset < 0 || e.Offset+4 > len(b) {
		return false
	}
	var offered uint64
	for _, w := range t.call.Writes {
		offered += w.Length()
	}
	n := uint64(be32(b[e.Offset:]))
	return n > used && n <= offered
}

// used counts the bytes of all Write chunks of the reply.
func (t *txCheck) used() (n uint64) {
	for _, w := range t.reply.Writes {
		n += w.Length()
	}
	return n
}
