package account

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestTies: kinds that are equally frequent are in the same order in the account of one input and in a merged one.
func TestTies(t *testing.T) {
	var packets []capture.Packet
	frame := func(etherType uint16, payload ...byte) {
		b := append(make([]byte, 12), byte(etherType>>8), byte(etherType))
		b = append(b, payload...)
		b = append(b, make([]byte, 64)...)
		packets = append(packets, capture.Packet{Number: uint64(len(packets) + 1), Data: b, Length: uint32(len(b)), Link: capture.LinkEthernet})
	}
	for _, etherType := range []uint16{0x88cc, 0x0806, 0x8809, 0x9999, 0x2000, 40, 50} {
		frame(etherType)
	}
	ip := func(proto byte, transport ...byte) {
		b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)+64+len(transport)))
		frame(0x0800, append(b, transport...)...)
	}
	for _, proto := range []byte{132, 50, 1, 2, 89, 200} {
		ip(proto)
	}
	for _, port := range []uint16{5000, 53, 80, 22, 443} {
		ip(17, byte(port>>8), byte(port), 0xff, 0xfe, 0, 72)
		ip(6, byte(port>>8), byte(port), 0xff, 0xfe, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10)
	}
	frame(0x0800, 0x41) // damaged
	frame(0x86dd, 0x41)
	d := decode.New(decode.Options{}, func(*transaction.Transaction) {})
	d.Batch(&capture.Batch{Packets: packets})
	d.Flush()
	a := d.Account()
	one := New(&a)
	if len(one.Kinds) < 20 {
		t.Fatalf("%d kinds only", len(one.Kinds))
	}
	two := Merge(&Account{}, one)
	if !reflect.DeepEqual(one.Kinds, two.Kinds) || one.Line != two.Line {
		t.Errorf("%v\n%v", one.Kinds, two.Kinds)
	}
}
