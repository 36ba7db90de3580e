package decode_test

import (
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

func account(t *testing.T, packets []capture.Packet) decode.Account {
	t.Helper()
	d := decode.New(decode.Options{}, func(*transaction.Transaction) {})
	if err := d.Run(&slice{packets: packets, batch: 64}); err != nil {
		t.Fatal(err)
	}
	a := d.Account()
	var packetsOf uint64
	for _, k := range a.Kinds {
		packetsOf += k.Packets
	}
	if packetsOf != a.Packets || a.Packets != uint64(len(packets)) {
		t.Errorf("%d packets by kind, %d in all, want %d", packetsOf, a.Packets, len(packets))
	}
	return a
}

// Every packet is of one kind, bare and wrapped, whole and cut.
func TestAccountIsComplete(t *testing.T) {
	for _, name := range captures(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			packets := load(t, name)
			account(t, packets)
			for _, k := range wrap.Kinds(0x155) {
				account(t, wrapped(packets, k, 0, 0))
			}
			for i := range packets {
				packets[i].Data = packets[i].Data[:min(i%70, len(packets[i].Data))]
			}
			account(t, packets)
		})
	}
}

func TestAccount(t *testing.T) {
	rping := load(t, "../samples/rocev2-rping.pcap")
	var vxlan wrap.Kind
	for _, vxlan = range wrap.Kinds(5) {
		if vxlan.Name == "vxlan" {
			break
		}
	}
	for _, c := range []struct {
		packets []capture.Packet
		tunnel  link.TunnelType
	}{{rping, link.NoTunnel}, {wrapped(rping, vxlan, 0, 0), link.VXLAN}} {
		a := account(t, c.packets)
		want := []decode.Kind{
			{Class: decode.ClassRDMA, Fabric: rdma.RoCEv2, Tunnel: c.tunnel},
			{Class: decode.ClassUnknown, Unknown: link.Unknown{Layer: link.EtherLayer, Value: 0x0806}, Tunnel: c.tunnel},
			{Class: decode.ClassUnknown, Unknown: link.Unknown{Layer: link.IPLayer, Value: 58}, Tunnel: c.tunnel},
		}
		if len(a.Kinds) != 3 || a.Kinds[0].Kind != want[0] || a.Kinds[1].Kind != want[1] || a.Kinds[2].Kind != want[2] || a.Transactions != 0 {
			t.Errorf("%+v", a)
		}
		if len(a.Services) != 1 || a.Services[0].Port != 7174 || a.Services[0].Connections != 1 {
			t.Errorf("%+v", a.Services)
		}
	}
	low := number([]capture.Packet{packet(1, eth(0, 6, []byte{2, 200, 8, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0, 0, 0, 0, 0, 0}))})
	if a := account(t, low); a.Kinds[0].Kind != (decode.Kind{Class: decode.ClassTCP, Port: 2049}) {
		t.Errorf("a SYN from port 712 to 2049: %+v", a.Kinds)
	}
	ssh := number([]capture.Packet{packet(1, eth(0, 6, append([]byte{0, 22, 200, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0, 0, 0, 0, 0, 0}, "SSH-2.0-OpenSSH"...)))})
	if a := account(t, ssh); a.Kinds[0].Kind != (decode.Kind{Class: decode.ClassTCP, Port: 22}) {
		t.Errorf("%+v", a)
	}
	if a := account(t, load(t, "../samples/rocev2-nfs41-recall.pcap")); len(a.Services) != 0 || a.Transactions != 50 {
		t.Errorf("%+v", a)
	}
	// The handshake of a connection counts with what it turns out to be.
	for _, k := range account(t, load(t, "../samples/iwarp-nfs40-basic.pcap.zst")).Kinds {
		if k.Class == decode.ClassTCP {
			t.Errorf("%+v", k)
		}
	}
}
