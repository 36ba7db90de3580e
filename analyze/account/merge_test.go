package account

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// accounts are accounts of all forms: of few and of many kinds, with tunnels and services.
func accounts() []*decode.Account {
	few := &decode.Account{Packets: 1, Kinds: []decode.Count{{Kind: decode.Kind{Class: decode.ClassRDMA, Fabric: rdma.RoCEv2}, Packets: 1, Bytes: 90}}}
	some := &decode.Account{
		Packets: 9, Transactions: 2,
		Kinds: []decode.Count{
			{Kind: decode.Kind{Class: decode.ClassTCP, Port: 22, Tunnel: link.VXLAN}, Packets: 5, Bytes: 500},
			{Kind: decode.Kind{Class: decode.ClassRDMA, Fabric: rdma.RoCEv2}, Packets: 4, Bytes: 400},
		},
		Services: []decode.Service{{Fabric: rdma.IWARP, Port: 3260, Connections: 3}, {Fabric: rdma.RoCEv2, ID: 0x1000000000001, Connections: 1}, {Fabric: rdma.TCP, Port: 9, Connections: 1}},
	}
	many := &decode.Account{Packets: 210, Transactions: 1}
	for i := range 20 {
		many.Kinds = append(many.Kinds, decode.Count{Kind: decode.Kind{Class: decode.ClassUDP, Port: uint16(1000 + i)}, Packets: uint64(20 - i), Bytes: 1})
		many.Services = append(many.Services, decode.Service{Fabric: rdma.TCP, Port: uint16(2000 + i), Connections: 20 - i})
	}
	return []*decode.Account{few, some, many, {}}
}

// TestFinish: an account that was read as JSON has the line of the one that was written.
func TestFinish(t *testing.T) {
	for _, a := range accounts() {
		want := New(a)
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Account
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if got.Finish(); got.Line != want.Line {
			t.Errorf("%q, want %q", got.Line, want.Line)
		}
	}
}

// TestMerge: the order makes no difference, all packets are counted, and sums do not wrap.
func TestMerge(t *testing.T) {
	var list []*Account
	for range 3 {
		for _, a := range accounts() {
			list = append(list, New(a))
		}
	}
	want := Merge(list...)
	if want.Packets != 3*220 || want.Transactions != 9 {
		t.Errorf("%d packets, %d transactions", want.Packets, want.Transactions)
	}
	for range 20 {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		n := rand.IntN(len(list))
		if got := Merge(append(list[n:len(list):len(list)], Merge(list[:n]...))...); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
	big := &Account{Packets: math.MaxUint64, Kinds: []Kind{{Kind: "ARP", Packets: math.MaxUint64}}, Services: []Service{{Connections: math.MaxInt}}}
	if got := Merge(big, big); got.Packets != math.MaxUint64 || got.Kinds[0].Packets != math.MaxUint64 || got.Services[0].Connections != math.MaxInt32 {
		t.Errorf("%+v", got)
	}
	wide := &Account{}
	for i := range 1000 {
		wide.Kinds = append(wide.Kinds, Kind{Kind: "UDP port", Port: uint16(i), Packets: 2})
		wide.Services = append(wide.Services, Service{Port: uint16(i), Connections: 1})
	}
	got := Merge(wide)
	var packets uint64
	for _, k := range got.Kinds {
		packets += k.Packets
	}
	if len(got.Kinds) != maxKinds || packets != 2000 || len(got.Services) != maxKinds {
		t.Errorf("%d kinds of %d packets, %d services", len(got.Kinds), packets, len(got.Services))
	}
}

// Merge adds up accounts.
func Merge(accounts ...*Account) *Account {
	var t Sum
	for _, a := range accounts {
		t.Add(a)
	}
	return t.Account()
}
