package decode_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// told says what was decoded of a dialogue, one line for each transaction, and what of record marks was counted.
func (d *dialogue) told(o decode.Options) string {
	var b strings.Builder
	dec := decode.New(o, func(tx *transaction.Transaction) {
		fmt.Fprintf(&b, "%d %v", tx.XID, tx.State)
		if c := &tx.Call; c.Seen() {
			fmt.Fprintf(&b, " call %d-%d in %d, %d bytes", c.First.Number, c.Last.Number, c.Packets, c.PayloadLength)
		}
		if r := &tx.Reply; r.Seen() {
			fmt.Fprintf(&b, " reply %d-%d", r.First.Number, r.Last.Number)
		}
		if tx.Retransmits > 0 {
			fmt.Fprintf(&b, " %d again", tx.Retransmits)
		}
		for _, n := range tx.Notes {
			fmt.Fprintf(&b, " %s %d", n.Kind, n.N)
		}
		b.WriteByte('\n')
	})
	if err := dec.Run(&traffic.Reader{Packets: d.packets, Batch: 3}); err != nil {
		panic(err)
	}
	if g := dec.Stats().Mismarked; g.Count > 0 {
		fmt.Fprintf(&b, "%d with wrong marks, %d bytes, packet %d at %d\n", g.Count, g.Bytes, g.First, g.Offset)
	}
	return b.String()
}

// TestSwallowed: a record mark that claims too much does not hide calls that the server answers.
func TestSwallowed(t *testing.T) {
	call := func(xid uint32, n int) []byte {
		c := oncrpc.Call{XID: xid, RPCVersion: oncrpc.Version, Program: 100003, Version: 3, Procedure: 7}
		return oncrpc.AppendRecord(nil, append(c.Append(nil), make([]byte, n)...))
	}
	reply := func(xid uint32) []byte { return oncrpc.AppendRecord(nil, (&oncrpc.Reply{XID: xid}).Append(nil)) }
	lying := func(b []byte, more uint32) []byte {
		b = slices.Clone(b)
		binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)+more)
		return b
	}
	again := func(d *dialogue, i int) {
		d.packets = append(d.packets, d.packets[i])
		p := &d.packets[len(d.packets)-1]
		p.Number = uint64(len(d.packets))
		p.Time = d.packets[len(d.packets)-2].Time + 1e6
	}
	for _, c := range []struct {
		name  string
		body  int // bytes of arguments of the first call
		play  func(d *dialogue, first func(b []byte) []byte)
		marks bool // the first call's mark is found to be wrong
		same  bool // all else is as if it were right
	}{
		{"one after the other", 0, func(d *dialogue, first func([]byte) []byte) {
			for xid := range uint32(4) {
				b := call(xid, 0)
				if xid == 0 {
					b = first(b)
				}
				d.say(0, b)
				d.say(1, reply(xid))
			}
		}, true, true},
		{"two at a time, of several segments", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			b := call(1, 3000)
			d.say(0, b[:1000])
			d.say(0, b[1000:2000])
			d.say(0, b[2000:])
			b = slices.Concat(call(2, 0), call(3, 2000))
			d.say(0, b[:1000])
			d.say(0, b[1000:])
			d.say(1, reply(3))
			d.say(1, reply(1))
			d.say(1, reply(2))
			d.say(1, reply(0))
		}, true, true},
		{"a call that only begins there", 100, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 100)))
			d.say(0, call(1, 0))
			b := call(2, 3000)
			d.say(0, b[:1000])
			d.say(1, reply(1))
			d.say(0, b[1000:])
			d.say(1, reply(2))
			d.say(1, reply(0))
		}, true, true},
		{"one that is sent again", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.say(0, call(1, 0))
			again(d, 0) // the first one
			again(d, 1)
			d.say(0, call(2, 3000)[:1500])
			again(d, 4)
			d.say(0, call(2, 3000)[1500:])
			d.say(0, call(3, 3000)[:1500])
			again(d, 7)
			d.say(1, reply(2))
			d.say(0, call(3, 3000)[1500:])
			d.say(1, reply(3))
			d.say(1, reply(1))
			d.say(1, reply(0))
		}, true, true},
		{"another mark that lies", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.say(0, lying(call(1, 0), 50000))
			d.say(0, call(2, 0))
			d.say(1, reply(1))
			d.say(0, call(3, 0))
			d.say(1, reply(2))
			d.say(1, reply(3))
			d.say(1, reply(0))
		}, true, false},
		{"sent again, and nobody answers it", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, call(0, 8000)[:1000])
			d.say(0, call(1, 0))
			again(d, 0)
			again(d, 1)
			d.say(0, make([]byte, 8044-1044))
			d.say(0, call(2, 0))
			d.say(1, reply(2))
			d.say(1, reply(0))
		}, false, false},
		{"no call", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			b := call(1, 0)
			b[4+12], b[4+13] = 0xff, 0xff // the program
			d.say(0, b)
			d.say(1, reply(1))
		}, false, false},
		{"in the record before", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, call(0, 1000)[:1000])
			d.say(0, call(1, 0))
			d.say(0, call(2, 3000)[:1000])
			d.say(1, reply(1))
			d.say(0, call(2, 3000)[1000:])
		}, false, false},
		{"nobody answers it", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.say(0, call(1, 0))
			d.say(1, reply(0))
		}, false, false},
		{"a reply to another one", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.say(0, call(1, 0))
			d.say(1, reply(2))
		}, false, false},
		{"a reply before it", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.say(1, reply(1))
			d.say(0, call(1, 0))
		}, false, false},
		{"a call of the server", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.say(0, call(1, 0))
			d.say(1, call(1, 0))
		}, false, false},
		{"not where a segment starts", 0, func(d *dialogue, first func([]byte) []byte) {
			b := first(call(0, 0))
			d.say(0, b[:len(b)-3])
			d.say(0, append(b[len(b)-3:], call(1, 0)...))
			d.say(1, reply(1))
		}, false, false},
		{"bytes are missing before it", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.next[0] += 500
			d.say(0, call(1, 0))
			d.say(1, reply(1))
		}, false, false},
		{"bytes are missing behind it", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.say(0, call(1, 0))
			d.next[0] += 500
			d.say(0, make([]byte, 10))
			d.say(1, reply(1))
		}, false, false},
		{"too many segments behind it", 0, func(d *dialogue, first func([]byte) []byte) {
			d.say(0, first(call(0, 0)))
			d.say(0, call(1, 0))
			for range 300 {
				d.say(0, make([]byte, 10))
			}
			d.say(1, reply(1))
		}, false, false},
		{"too many bytes behind it", 0, func(d *dialogue, first func([]byte) []byte) {
			b := call(0, 0)
			binary.BigEndian.PutUint32(b, 0x80000000|2<<20)
			d.say(0, b)
			d.say(0, call(1, 0))
			for range 6 {
				d.say(0, make([]byte, 60000))
			}
			d.say(1, reply(1))
		}, false, false},
		{"a record of several fragments", 0, func(d *dialogue, first func([]byte) []byte) {
			b := first(call(0, 0))
			b[0] &= 0x7f
			d.say(0, b)
			d.say(0, call(1, 0))
			d.say(1, reply(1))
		}, false, false},
	} {
		var right, wrong dialogue
		c.play(&right, func(b []byte) []byte { return b })
		c.play(&wrong, func(b []byte) []byte { return lying(b, 100000) })
		for _, o := range []decode.Options{{}, {Trackers: 2}} {
			want, got := right.told(o), wrong.told(o)
			note := strings.Contains(got, " record_mark ")
			if note != c.marks {
				t.Errorf("%s: noted %v\n%s", c.name, note, got)
			}
			if !c.same {
				continue
			}
			lines := strings.SplitAfter(got, "\n")
			for i, l := range lines {
				if at := strings.Index(l, fmt.Sprint(" record_mark ", 100000+len(call(0, c.body))-4)); at >= 0 {
					lines[i] = l[:at] + "\n"
				}
			}
			if all := strings.Join(lines, ""); all != want+"1 with wrong marks, 0 bytes, packet 1 at 0\n" {
				t.Errorf("%s:\n%s\nwant\n%s", c.name, all, want)
			}
		}
	}

	var d dialogue
	b := call(0, 0)
	binary.BigEndian.PutUint32(b, 0x80000000|2<<20)
	d.say(0, b)
	for range 5 {
		d.say(0, make([]byte, 60000))
	}
	d.say(0, call(1, 0))
	d.say(1, reply(1))
	if got := d.told(decode.Options{}); !strings.Contains(got, fmt.Sprint(" record_mark ", 2<<20)) {
		t.Errorf("behind many bytes:\n%s", got)
	}

	// What a WRITE carries may look like a call that is under way, or was.
	for _, after := range []bool{false, true} {
		var d dialogue
		d.say(0, call(1, 0))
		b := call(0, 8000)
		d.say(0, b[:1000])
		d.say(0, call(1, 0))
		if after {
			d.say(0, b[1044:])
		}
		d.say(1, reply(1))
		if !after {
			d.say(0, b[1044:])
		}
		d.say(1, reply(0))
		if got := d.told(decode.Options{}); strings.Contains(got, "mark") || strings.Count(got, "complete") != 2 {
			t.Errorf("data of a WRITE:\n%s", got)
		}
	}
	d = dialogue{}
	b = call(0, 8000)
	d.say(0, b[:1000])
	d.say(0, call(1, 0))
	again(&d, 0)
	again(&d, 1)
	d.say(0, b[1044:])
	d.say(0, call(2, 0))
	again(&d, 5)
	d.say(1, reply(0))
	d.say(1, reply(2))
	if got, want := d.told(decode.Options{}), "0 complete call 1-5 in 3, 8040 bytes reply 8-8 2 again\n2 complete call 6-7 in 1, 40 bytes reply 9-9 1 again\n"; got != want {
		t.Errorf("packets seen again:\n%s", got)
	}
}
