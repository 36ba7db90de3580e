package duplicates

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

func look(t *testing.T, list []capture.Packet) (Delay, bool) {
	t.Helper()
	found, err := delays(&reader{list: list}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := found[0]
	return d, ok
}

// TestLook: packets that come twice are found, with the time between them.
func TestLook(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst"} {
		list := packets(t, name)
		for _, c := range []struct {
			delay, jitter int64
			loss          int
			change        func([]byte)
		}{
			{200, 0, 0, nil}, {3000, 2000, 0, routed}, {1e6, 1e6, 2, routed}, {130e6, 3e6, 1, nil}, {800e6, 40e6, 0, routed},
		} {
			d, ok := look(t, twice(list, c.delay, c.jitter, c.loss, c.change))
			if !ok {
				t.Errorf("%s, %d ns apart: not found", name, c.delay)
				continue
			}
			if d.Times != 2 || d.Low > c.delay || d.High < c.delay+c.jitter || d.Typical < c.delay || d.Typical > c.delay+c.jitter {
				t.Errorf("%s, %d ns apart, and up to %d more: %+v", name, c.delay, c.jitter, d)
			}
		}
	}
}

// TestLookFindsNothing: captures of one point, with whatever is sent again, do not have packets twice.
func TestLookFindsNothing(t *testing.T) {
	all, err := os.ReadDir(samples)
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, f := range all {
		if !strings.Contains(f.Name(), ".pcap") {
			continue
		}
		looked++
		found, err := delays(&reader{list: packets(t, f.Name())}, 0)
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %v %v", f.Name(), found, err)
		}
	}
	if looked < 10 {
		t.Errorf("%d samples", looked)
	}

	list := packets(t, "rocev2-nfs41-recall.pcap")
	again := func(times int, of func(i int) bool) []capture.Packet {
		var out []capture.Packet
		for i, p := range list {
			out = append(out, p)
			for n := range times {
				if of(i) {
					p.Time += int64(n+1) * 1e6
					out = append(out, p)
				}
			}
		}
		slices.SortStableFunc(out, func(a, b capture.Packet) int { return cmp.Compare(a.Time, b.Time) })
		return out
	}
	client := list[10].Data[26:30]
	for name, x := range map[string][]capture.Packet{
		"each packet eight times":     again(7, func(int) bool { return true }),
		"each packet five times":      again(4, func(int) bool { return true }),
		"every second packet twice":   again(1, func(i int) bool { return i%2 == 0 }),
		"one direction twice":         again(1, func(i int) bool { return bytes.Equal(list[i].Data[26:30], client) }),
		"a few packets":               twice(list[:8], 1000, 0, 0, nil),
		"copies at any distance":      twice(list, 0, 3e9, 0, nil),
		"each packet in its own time": list,
		"one capture after itself":    append(slices.Clone(list), list...),
	} {
		if d, ok := look(t, x); ok {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestLookAtMore: packets that come three or four times.
func TestLookAtMore(t *testing.T) {
	list := packets(t, "iwarp-nfs41-recall.pcap")
	for n := 3; n <= mostTimes; n++ {
		x := list
		for i := 1; i < n; i++ {
			y := slices.Clone(list)
			for k := range y {
				y[k].Time += int64(i) * 2000
			}
			x = append(slices.Clip(x), y...)
		}
		slices.SortStableFunc(x, func(a, b capture.Packet) int { return cmp.Compare(a.Time, b.Time) })
		d, ok := look(t, x)
		if !ok || d.Times != n || d.Low > 2000 || d.High < int64(n-1)*2000 {
			t.Errorf("%d times: %+v %t", n, d, ok)
		}
	}
}

// TestLookBeyondAll: of a longer beginning, only some packets are looked at.
func TestLookBeyondAll(t *testing.T) {
	var list []capture.Packet
	once := packets(t, "rocev2-nfs41-ipv6.pcap.zst")
	for i := range 12 {
		for _, p := range once {
			p.Data = bytes.Clone(p.Data)
			if len(p.Data) > 60 {
				p.Data[58] ^= byte(i + 1) // each time other packets
			}
			p.Time += int64(i) * 20e9
			list = append(list, p)
		}
	}
	for _, delay := range []int64{2000, 40e6, 2e9} {
		if _, ok := look(t, twice(list, delay, delay/20, 1, nil)); !ok {
			t.Errorf("%d ns apart: not found", delay)
		}
		// The second point begins when the first has captured half.
		half := len(list) / 8
		x := append(slices.Clone(list[:half]), twice(list[half:], delay, 0, 0, nil)...)
		if _, ok := look(t, x); !ok {
			t.Errorf("%d ns apart, from packet %d on: not found", delay, half)
		}
	}
}

// delays reads the beginning of a capture and returns the taps that show packets more than once. file is the size of the file in bytes.
func delays(r capture.Reader, file int64) (map[uint16]Delay, error) {
	taps, err := beginning(r, file)
	found := map[uint16]Delay{}
	for tap, t := range taps {
		if d, ok := t.delay(); ok {
			found[tap] = d
		}
	}
	return found, err
}
