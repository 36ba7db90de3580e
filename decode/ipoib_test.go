package decode_test

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// ibNetwork makes native InfiniBand packets of the frames of an Ethernet capture:
// RoCEv2 becomes what it would have been there, and all other IP goes over
// IPoIB.
type ibNetwork struct {
	connected bool // IPoIB in messages of reliable connections, else in datagrams
	erf       bool // with a header of Endace's record format
	psn       [2]uint32
	out       []capture.Packet
}

// lids has the LIDs of the two hosts, in the order of their addresses.
var lids = [2]uint16{0x11, 0x22}

func (n *ibNetwork) add(p *capture.Packet) {
	var f link.Frame
	link.Decode(p.Link, p.Data, p.Length, &f)
	side := 0
	if f.Dst.Less(f.Src) {
		side = 1
	}
	switch {
	case f.Proto == link.UDP && f.DstPort == decode.RoCEPort && len(f.Payload) == f.PayloadLen:
		n.packet(p, side, f.Payload[:len(f.Payload)-roce.ICRCSize])
		return
	case f.Proto != link.TCP && f.Proto != link.UDP:
		return // of no interest
	}
	etherType := uint16(0x0800)
	if f.Src.Is6() {
		etherType = 0x86dd
	}
	ip := slices.Concat(f.Net, f.Transport, f.Payload)
	message := append(binary.BigEndian.AppendUint16(nil, etherType), 0, 0)
	message = append(message, ip...)
	if !n.connected {
		bth := n.bth(0x64, 0x48, 0, len(message))
		deth := make(roce.DETH, roce.DETHSize)
		deth.SetQKey(0x0b1b)
		deth.SetSrcQP(0x49)
		n.packet(p, side, slices.Concat(bth, deth, message))
		return
	}
	const mtu = 2048
	for at := 0; at < len(message); at += mtu {
		part := message[at:min(len(message), at+mtu)]
		opcode := byte(1) // Send Middle
		switch first, last := at == 0, at+mtu >= len(message); {
		case first && last:
			opcode = 4
		case first:
			opcode = 0
		case last:
			opcode = 2
		}
		n.packet(p, side, slices.Concat(n.bth(opcode, uint32(0x80+side), n.psn[side], len(part)), part))
		n.psn[side]++
	}
}

func (n *ibNetwork) bth(opcode byte, qpn, psn uint32, payload int) []byte {
	b := make(roce.BTH, roce.BTHSize)
	b.SetOpcode(roce.Opcode(opcode))
	b.SetPKey(0x8003)
	b.SetDestQP(qpn)
	b.SetPSN(psn)
	b.SetPad(uint8(-payload & 3))
	return b
}

// packet adds LRH, pad, ICRC and VCRC to what begins with a BTH.
func (n *ibNetwork) packet(p *capture.Packet, side int, ib []byte) {
	ib = append(slices.Clone(ib), make([]byte, -len(ib)&3)...)
	lrh := make([]byte, 8)
	lrh[1] = 2 // BTH follows
	binary.BigEndian.PutUint16(lrh[2:], lids[1-side])
	binary.BigEndian.PutUint16(lrh[4:], uint16((8+len(ib)+roce.ICRCSize)/4))
	binary.BigEndian.PutUint16(lrh[6:], lids[side])
	var c roce.Checker
	ib = c.Append(link.InfiniBand, lrh, nil, ib)
	q := *p
	q.Link, q.Data = capture.LinkInfiniBand, append(slices.Concat(lrh, ib), 0, 0)
	if n.erf {
		erf := make([]byte, 16)
		erf[8] = 21
		binary.BigEndian.PutUint16(erf[10:], uint16(16+len(q.Data)))
		binary.BigEndian.PutUint16(erf[14:], uint16(len(q.Data)))
		q.Link, q.Data = capture.LinkERF, slices.Concat(erf, q.Data)
	}
	q.Length = uint32(len(q.Data))
	n.out = append(n.out, q)
}

// A capture of an InfiniBand fabric shows MOUNT, rpcbind and NFS over TCP, in IP
// over InfiniBand, beside NFS/RDMA.
func TestIPoIB(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		packets := load(t, "../samples/"+name)
		if name == "iwarp-nfs40-basic.pcap.zst" {
			packets = slices.DeleteFunc(packets, func(p capture.Packet) bool { return p.Length > 4000 })
		}
		want := complete(t, packets)
		for _, c := range []struct {
			name string
			n    ibNetwork
		}{
			{"datagrams", ibNetwork{}},
			{"connected", ibNetwork{connected: true}},
			{"ERF", ibNetwork{erf: true}},
		} {
			t.Run(filepath.Base(name)+"/"+c.name, func(t *testing.T) {
				for i := range packets {
					c.n.add(&packets[i])
				}
				got := complete(t, number(c.n.out))
				for k, n := range want {
					if got[k] != n {
						t.Errorf("%s: %d complete, want %d", k, got[k], n)
					}
				}
				a := account(t, c.n.out)
				for _, k := range a.Kinds {
					if k.Class == decode.ClassDamaged || k.Class == decode.ClassUnknown {
						t.Errorf("%+v", k)
					}
				}
			})
		}
	}
}

// complete counts complete transactions by their fabric: RDMA, TCP, UDP.
func complete(t *testing.T, packets []capture.Packet) map[string]int {
	t.Helper()
	count := map[string]int{}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		if tx.State != transaction.Complete || len(tx.Notes) > 0 {
			return
		}
		name := tx.Connection.Fabric.String()
		if tx.Connection.Fabric == rdma.RoCEv2 || tx.Connection.Fabric == rdma.InfiniBand {
			name = "rdma"
		}
		count[name]++
	})
	if err := d.Run(&slice{packets: packets, batch: 64}); err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.BadICRC+s.Undecodable > 0 {
		t.Errorf("%+v", s)
	}
	return count
}
