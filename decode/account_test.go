package decode_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/wrap"
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
	unsupported := []capture.Packet{{Number: 1, Time: 1, Length: 4, Link: 105, Data: []byte{1, 2, 3, 4}}}
	ssh := number([]capture.Packet{packet(1, eth(0, 6, append([]byte{0, 22, 200, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0, 0, 0, 0, 0, 0}, "SSH-2.0-OpenSSH"...)))})
	for _, c := range []struct {
		name    string
		packets []capture.Packet
		want    string
	}{
		{"rping", rping, "47 packets: 41 RoCEv2, 4 ARP, 2 ICMPv6, no RPC; services: rping (7174)"},
		{"rping in VXLAN", wrapped(rping, vxlan, 0, 0), "47 packets: 41 RoCEv2 in vxlan, 4 ARP in vxlan, 2 ICMPv6 in vxlan, no RPC; services: rping (7174)"},
		{"nothing", nil, "0 packets, no RPC"},
		{"link type", unsupported, "1 packet: 1 unsupported link type 105 (IEEE802_11), no RPC"},
		{"TCP", ssh, "1 packet: 1 TCP port 22 (SSH), no RPC"},
	} {
		a := account(t, c.packets)
		if got := string(text.Account(nil, &a, 8)); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
	a := account(t, load(t, "../samples/rocev2-nfs41-recall.pcap"))
	if got := string(text.Account(nil, &a, 8)); strings.Contains(got, "no RPC") || !strings.HasPrefix(got, "281 packets: 2") {
		t.Error(got)
	}
}
