package transaction_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// secured is a call of RPCSEC_GSS with a handle of 8 bytes and 24 bytes of arguments, which begin at byte 104, or 112 if their integrity is protected.
func secured(service, sequence uint32) []byte {
	words := []uint32{
		9, 0, 2, 100003, 4, 1, // XID, call, version of RPC, program, version, procedure
		6, 28, 1, 0, sequence, service, 8, 0xaaaa, 0xbbbb, // the credential, of a context
		6, 32, sequence, 1, 2, 3, 4, 5, 6, sequence, // the verifier
	}
	args := []uint32{11, 12, 13, 14, 15, 16}
	if service == 2 {
		words = append(words, 28, sequence)
	}
	if service == 3 {
		for i := range args {
			args[i] += sequence
		}
	}
	words = append(words, args...)
	if service == 2 {
		words = append(words, 8, sequence, 7) // the checksum
	}
	var b []byte
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// TestSecuredCopy sends a call of RPCSEC_GSS again, with another sequence number and something else that is different.
func TestSecuredCopy(t *testing.T) {
	const none, integrity, privacy = 1, 2, 3
	for _, c := range []struct {
		name    string
		service uint32
		change  int // this byte of the copy, if it is not 0
		cut     int // this much is captured, if it is not 0
		want    bool
	}{
		{"none", none, 0, 0, true},
		{"integrity", integrity, 0, 0, true},
		{"privacy", privacy, 0, 0, true},
		{"another program", none, 15, 0, false},
		{"another version", none, 19, 0, false},
		{"another procedure", none, 23, 0, false},
		{"another flavor", none, 27, 0, false},
		{"a control message", none, 39, 0, false},
		{"another service", none, 47, 0, false},
		{"another handle", none, 59, 0, false},
		{"another verifier", none, 70, 0, true},
		{"a verifier of another length", none, 67, 0, false},
		{"other arguments", none, 110, 0, false},
		{"other arguments behind the sequence number", integrity, 110, 0, false},
		{"another length of them", integrity, 103, 0, false},
		{"another checksum", integrity, 141, 0, true},
		{"other encrypted arguments", privacy, 110, 0, true},
		{"cut within the arguments", integrity, 0, 116, true},
		{"cut within the arguments, which differ", integrity, 110, 116, false},
		{"cut before the arguments", integrity, 0, 102, true},
		{"cut within the verifier", none, 0, 80, true},
		{"cut before the verifier", none, 0, 64, false},
		{"cut within the credential", none, 0, 47, false},
	} {
		w := newWire(t, rdma.TCP)
		first, second := secured(c.service, 5), secured(c.service, 6)
		if c.change > 0 {
			second[c.change]++
		}
		for _, b := range [][]byte{first, second} {
			data := b
			if c.cut > 0 {
				data = b[:c.cut]
			}
			ref := w.ref()
			w.tr.Send(w.c, &rdma.Send{From: 0, Data: data, Length: len(b), First: ref, Last: ref, Packets: 1})
		}
		w.send(1, rpc(9, true, 0, 8))
		r := w.end()
		if len(r) != 2 || r[0].state != transaction.NoReply || r[1].state == transaction.NoReply {
			t.Fatalf("%s: %d transactions", c.name, len(r))
		}
		again, copied, reused := has(r[0], transaction.SecuredAgain), has(r[1], transaction.SecuredCopy), has(r[0], transaction.XIDReused)
		if again != c.want || copied != c.want || reused == c.want {
			t.Errorf("%s: sent again %v, a copy %v, another call %v", c.name, again, copied, reused)
		}
	}
}

// TestSecuredCopyLater sends it again after its reply, in other words or of another size.
func TestSecuredCopyLater(t *testing.T) {
	w := newWire(t, rdma.TCP)
	w.send(0, secured(1, 5))
	w.send(1, rpc(9, true, 0, 8))
	w.send(0, secured(1, 6))
	r := w.end()
	w.want("after its reply", len(r) == 2 && len(r[0].notes) == 0 && has(r[1], transaction.SecuredCopy))

	w = newWire(t, rdma.TCP)
	w.send(0, secured(1, 5))
	w.send(0, append(secured(1, 6), 0, 0, 0, 0))
	r = w.end()
	w.want("longer", len(r) == 2 && has(r[0], transaction.XIDReused) && !has(r[1], transaction.SecuredCopy))

	w = newWire(t, rdma.TCP)
	w.send(0, secured(1, 5))
	w.send(0, secured(1, 5))
	r = w.end()
	w.want("with the same number", len(r) == 1 && has(r[0], transaction.CallRepeated))

	for _, c := range []struct {
		name   string
		at     int // this byte of both is another one
		to     byte
		copied bool
	}{
		{"a credential of another flavor", 27, 1, false},
		{"a message that creates a context", 39, 1, false},
		{"a verifier with padding", 67, 30, true},
	} {
		first, second := secured(1, 5), secured(1, 6)
		first[c.at], second[c.at] = c.to, c.to
		w = newWire(t, rdma.TCP)
		w.send(0, first)
		w.send(0, second)
		r = w.end()
		w.want(c.name, len(r) == 2 && has(r[1], transaction.SecuredCopy) == c.copied && has(r[0], transaction.XIDReused) == !c.copied)
	}
	w = newWire(t, rdma.TCP)
	w.send(0, secured(1, 5))
	other := secured(1, 5)
	other[70]++ // the verifier
	w.send(0, other)
	r = w.end()
	w.want("another verifier of the same number", len(r) == 2 && has(r[0], transaction.XIDReused))

	w = newWire(t, rdma.TCP)
	w.send(0, secured(1, 5))
	ref := w.ref()
	w.tr.Send(w.c, &rdma.Send{From: 0, Data: secured(1, 6)[:30], Length: len(other), First: ref, Last: ref, Packets: 1})
	r = w.end()
	w.want("too little of the second", len(r) == 2 && !has(r[1], transaction.SecuredCopy))

	// Lengths that lie.
	for _, at := range []int{28, 64, 100} {
		first, second := secured(2, 5), secured(2, 6)
		for _, b := range [][]byte{first, second} {
			b[at] = 0xff
		}
		w = newWire(t, rdma.TCP)
		w.send(0, first)
		w.send(0, second)
		r = w.end()
		w.want("malformed", len(r) == 2 && has(r[0], transaction.XIDReused))
		w = newWire(t, rdma.TCP)
		w.send(0, slices.Clone(first[:at+4]))
		w.send(0, slices.Clone(second[:at+4]))
		w.end()
	}
	short := secured(1, 5)
	binary.BigEndian.PutUint32(short[28:], 12) // a credential that ends before its handle
	other = slices.Clone(short)
	other[43]++
	w = newWire(t, rdma.TCP)
	w.send(0, short)
	w.send(0, other)
	r = w.end()
	w.want("a credential that is too short", len(r) == 2 && has(r[0], transaction.XIDReused))
}
