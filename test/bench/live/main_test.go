//go:build linux

package main

import "testing"

func TestCounted(t *testing.T) {
	for _, c := range []struct {
		text              string
		captured, dropped int64
		fails             bool
	}{
		{"rpcrdma-dump: 5 packets written, 9 bytes\nrpcrdma-dump: veth0: 12 packets captured, 3 dropped for lack of room\n", 12, 3, false},
		{"x: a: 1 packet captured, 0 dropped for lack of room, 4 missed by the interface\nx: b: 2 packets captured, 7 dropped for lack of room\n", 3, 7, false},
		{"rpcrdma-top: veth0: 1 packet dropped for lack of room\n", -1, 1, false},
		{"x: a: 99999999999999999999 packets captured, 0 dropped for lack of room\n", 0, 0, true},
		{"rpcrdma-dump: something else\n", 0, 0, true},
	} {
		captured, dropped, err := counted(c.text)
		if (err != nil) != c.fails || !c.fails && (captured != c.captured || dropped != c.dropped) {
			t.Errorf("%q: %d, %d, %v", c.text, captured, dropped, err)
		}
	}
}

// What does not arrive, or is not captured, is not a success.
func TestLossless(t *testing.T) {
	good := result{sent: sent{Packets: 10}, iface: 10, captured: 10}
	if !good.lossless() {
		t.Error("nothing was lost")
	}
	for _, f := range []func(*result){
		func(r *result) { r.dropped = 1 },
		func(r *result) { r.iface = 9 },
		func(r *result) { r.iface = 11 },
		func(r *result) { r.captured = 9 },
	} {
		r := good
		if f(&r); r.lossless() {
			t.Errorf("%+v", r)
		}
	}
}

func TestTables(t *testing.T) {
	packet := "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n" +
		"0000000000000000 3      3    0003   2     1 0      0      1234\n" +
		"0000000000000000 3      3    0000   0     0 0      0      1235\n" +
		"0000000000000000 3      3    0003   2     0 0      0      1236\n"
	if n := boundSockets(packet); n != 1 {
		t.Errorf("%d sockets", n)
	}
	dev := "Inter-|   Receive\n face |bytes    packets errs\n bench0: 1 2 3 4\nbench1:  500     77    0    0\n"
	if n, err := packetsOf(dev, "bench1"); n != 77 || err != nil {
		t.Error(n, err)
	}
	if _, err := packetsOf(dev, "bench"); err == nil {
		t.Error("an interface that is not there")
	}
}

func TestChoose(t *testing.T) {
	if list, err := choose("top,capture"); err != nil || len(list) != 2 || list[0].exe != "rpcrdma-top" || list[1].goal != 1e6 {
		t.Error(list, err)
	}
	if _, err := choose("tcpdump"); err == nil {
		t.Error("a program that is not known")
	}
}

func TestFit(t *testing.T) {
	if fit(0) != "–" || fit(250) != "4000000" {
		t.Error(fit(0), fit(250))
	}
}
