package decode_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// RoCEv2 is found in wrappings of no known kind, and the account says where.
func TestUnnamed(t *testing.T) {
	ethernet := func(etherType uint16, between int, inner []byte) []byte {
		b := append(bytes.Clone(inner[:12]), byte(etherType>>8), byte(etherType))
		return append(append(b, make([]byte, between)...), inner[14:]...)
	}
	// ip is an Ethernet frame with an IPv4 header, which the whole inner frame follows behind head.
	ip := func(protocol byte, head, inner []byte) []byte {
		h := make([]byte, 20)
		h[0], h[8], h[9] = 0x45, 64, protocol
		binary.BigEndian.PutUint16(h[2:], uint16(20+len(head)+len(inner)))
		copy(h[12:], []byte{198, 51, 100, 1, 198, 51, 100, 2})
		return append(append(append(append(bytes.Clone(inner[:12]), 8, 0), h...), head...), inner...)
	}
	udp := func(inner []byte) []byte {
		h := make([]byte, 16)
		binary.BigEndian.PutUint16(h, 4000)
		binary.BigEndian.PutUint16(h[2:], 5555)
		binary.BigEndian.PutUint16(h[4:], uint16(16+len(inner)))
		return ip(17, h, inner)
	}
	original := load(t, "../samples/rocev2-nfs41-recall.pcap")
	read := func(wrap func([]byte) []byte, snap int) (lines []string, account string) {
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) { lines = append(lines, line(tx)) })
		packets := make([]capture.Packet, len(original))
		for i, p := range original {
			if wrap != nil && len(p.Data) > 14 {
				p.Data = wrap(p.Data)
				p.Length = uint32(len(p.Data))
			}
			p.Data = p.Data[:min(len(p.Data), snap)]
			packets[i] = p
		}
		if err := d.Run(&slice{packets: number(packets), batch: 64}); err != nil {
			t.Error(err)
		}
		a := d.Account()
		for i := range a.Kinds {
			if k := &a.Kinds[i].Kind; k.Class == decode.ClassRDMA && k.Fabric == rdma.RoCEv2 {
				account += fmt.Sprintf("%s in %s, %d bytes further in", k.Fabric, k.Unknown, k.Skipped)
			}
		}
		return lines, account
	}
	want, _ := read(nil, 1<<20)
	for _, c := range []struct {
		name, account string
		wrap          func([]byte) []byte
		snap          int
	}{
		{"EtherType", "rocev2 in EtherType 0x9999, 12 bytes further in", func(b []byte) []byte { return ethernet(0x9999, 12, b) }, 1 << 20},
		{"EtherType, cut", "rocev2 in EtherType 0x9999, 12 bytes further in", func(b []byte) []byte { return ethernet(0x9999, 12, b) }, 120},
		{"EtherType for experiments", "rocev2 in local experimental EtherType, 20 bytes further in", func(b []byte) []byte {
			return append(ethernet(0x88b5, 6, b)[:20], b...)
		}, 1 << 20},
		{"a header of Arista of another kind", "rocev2 in header of Arista, 14 bytes further in", func(b []byte) []byte {
			return ethernet(0xd28b, 14, b)
		}, 1 << 20},
		{"UDP", "rocev2 in UDP port 5555, 22 bytes further in", udp, 1 << 20},
		{"IP", "rocev2 in IP protocol 200, 14 bytes further in", func(b []byte) []byte { return ip(200, nil, b) }, 1 << 20},
		{"ICMP quotes what it is about", "", func(b []byte) []byte { return ip(1, nil, b) }, 1 << 20},
		{"sFlow samples", "", func(b []byte) []byte { b = udp(b); binary.BigEndian.PutUint16(b[36:], 6343); return b }, 1 << 20},
		{"a wrong ICRC", "", func(b []byte) []byte { b = ethernet(0x9999, 12, b); b[len(b)-1] ^= 1; return b }, 1 << 20},
		{"ports everywhere", "", func(b []byte) []byte { return ethernet(0x9999, 0, bytes.Repeat([]byte{0x12, 0xb7}, 700)) }, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, account := read(c.wrap, c.snap)
			if account != c.account {
				t.Errorf("account %q, want %q", account, c.account)
			}
			switch {
			case c.account == "" && len(got) > 0:
				t.Errorf("%d transactions", len(got))
			case c.account != "" && c.snap > 1000 && fmt.Sprint(len(got)) != fmt.Sprint(len(want)):
				t.Errorf("%d transactions, want %d", len(got), len(want))
			}
		})
	}
}

// TestUnnamedFragments: the datagrams of a wrapping of no known kind may be fragmented.
func TestUnnamedFragments(t *testing.T) {
	original := load(t, "../samples/rocev2-nfs41-recall.pcap")
	read := func(packets []capture.Packet, trackers int) (lines []string) {
		d := decode.New(decode.Options{Trackers: trackers}, func(tx *transaction.Transaction) { lines = append(lines, line(tx)) })
		if err := d.Run(&slice{packets: number(packets), batch: 64}); err != nil {
			t.Error(err)
		}
		return lines
	}
	var pieces []capture.Packet
	for i, p := range original {
		inner := p.Data
		whole := append([]byte{0x0f, 0xa0, 0x15, 0xb3, byte((len(inner) + 16) >> 8), byte(len(inner) + 16), 0, 0}, make([]byte, 8)...)
		whole = append(whole, inner...)
		const most = 600
		for at := 0; at < len(whole); at += most {
			part := whole[at:min(at+most, len(whole))]
			h := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0, byte(i >> 8), byte(i), byte(at / 8 >> 8), byte(at / 8), 64, 17, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2}
			binary.BigEndian.PutUint16(h[16:], uint16(20+len(part)))
			if at+most < len(whole) {
				h[20] |= 0x20
			}
			p.Data = append(h, part...)
			p.Length = uint32(len(p.Data))
			pieces = append(pieces, p)
		}
	}
	if len(pieces) == len(original) {
		t.Fatal("no packet is long enough")
	}
	want := read(original, 0)
	for _, trackers := range []int{0, 2} {
		if got := read(pieces, trackers); len(got) != len(want) {
			t.Errorf("%d trackers: %d transactions, want %d", trackers, len(got), len(want))
		}
	}
}
