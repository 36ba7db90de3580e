package decode_test

// Captures as the field makes them: mirrors, tunnels, a tap for each direction.
// What they say is compared with what the same packets say when captured at
// one point without wrapping.

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// captures are the samples with one capture point, and those of the folder that
// RPCRDMA_CAPTURES names.
func captures(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("../samples/*.pcap*")
	if err != nil || len(list) == 0 {
		t.Fatal(err, list)
	}
	if dir := os.Getenv("RPCRDMA_CAPTURES"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.pcap*"))
		if err != nil || len(more) == 0 {
			t.Fatal(err, more)
		}
		list = append(list, more...)
	}
	list = slices.DeleteFunc(list, func(name string) bool { return bytes.Contains([]byte(name), []byte(".both.")) })
	if testing.Short() { // the race detector makes all of them a matter of minutes
		list = list[:3]
	}
	return list
}

// someKinds returns the wrappings that fit, of which the race detector, which is slow, gets three.
func someKinds(fits func(k *wrap.Kind) bool) []wrap.Kind {
	list := slices.DeleteFunc(slices.Clone(wrap.Kinds(0x155)), func(k wrap.Kind) bool { return !fits(&k) })
	if testing.Short() {
		list = []wrap.Kind{list[0], list[len(list)/2], list[len(list)-1]}
	}
	return list
}

func load(t testing.TB, name string) []capture.Packet {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	var list []capture.Packet
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			p.Data = bytes.Clone(p.Data)
			list = append(list, p)
		}
	}
}

func same(t *testing.T, name string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	different := 0
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && got[i] == want[i] {
			continue
		}
		if different++; different > 2 {
			continue
		}
		if i < len(got) {
			t.Errorf("%s: got  %s", name, got[i])
		}
		if i < len(want) {
			t.Errorf("%s: want %s", name, want[i])
		}
	}
	t.Errorf("%s: %d of %d transactions differ", name, different, len(want))
}

// Optical taps and mirror ports often show each direction at its own interface.
func TestTapForEachDirection(t *testing.T) {
	for _, name := range captures(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			packets := load(t, name)
			want := sequential(packets, 64, decode.Options{})
			for i := range packets {
				var f link.Frame
				p := &packets[i]
				link.Decode(p.Link, p.Data, p.Length, &f)
				p.Tap = 1
				if f.Src.IsValid() && f.Src.Less(f.Dst) {
					p.Tap = 2
				}
			}
			same(t, name, sequential(packets, 64, decode.Options{}), want)
		})
	}
}

// A rejection is seen where only its direction is.
func TestRejectedAtAnotherTap(t *testing.T) {
	packets := load(t, "../samples/rocev2-nfs41-restart.pcap.zst")
	rejected := func() (n int) {
		run(t, packets, 64, decode.Options{Observers: []decode.Observer{{Closed: func(c *rdma.Connection) {
			if c.State == rdma.Rejected {
				n++
			}
		}}}})
		return n
	}
	want := rejected()
	for i := range packets {
		var f link.Frame
		p := &packets[i]
		link.Decode(p.Link, p.Data, p.Length, &f)
		if f.Src.IsValid() && f.Src.Less(f.Dst) {
			p.Tap = 1
		}
	}
	if got := rejected(); got != want || want == 0 {
		t.Errorf("%d connections rejected, want %d", got, want)
	}
}

// wrapped puts every packet into a wrapping; tap is its capture point.
func wrapped(packets []capture.Packet, k wrap.Kind, id uint32, tap uint16) []capture.Packet {
	w := wrap.New(k, id)
	out := slices.Clone(packets)
	for i := range out {
		p := &out[i]
		data, wire := w.Frame(p.Data, int(p.Length))
		p.Data, p.Length, p.Link, p.Tap = bytes.Clone(data), uint32(wire), k.Link, tap
	}
	return out
}

// What a capture says does not depend on the wrapping of its packets.
func TestWrapped(t *testing.T) {
	for _, name := range captures(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			packets := load(t, name)
			want, wantStats := run(t, packets, 64, decode.Options{})
			for _, k := range wrap.Kinds(0x155) {
				got, stats := run(t, wrapped(packets, k, 0, 0), 64, decode.Options{})
				same(t, k.Name, got, want)
				if stats.GoodICRC != wantStats.GoodICRC || stats.BadICRC != wantStats.BadICRC || stats.NotChecked != wantStats.NotChecked ||
					stats.Undecodable != wantStats.Undecodable {
					t.Errorf("%s: %+v, want %+v", k.Name, stats, wantStats)
				}
			}
		})
	}
}

// both interleaves two captures of the same packets, the second one later by
// delay.
func both(a, b []capture.Packet, delay int64) []capture.Packet {
	b = slices.Clone(b)
	for i := range b {
		b[i].Time += delay
	}
	out := slices.Concat(a, b)
	slices.SortStableFunc(out, func(x, y capture.Packet) int { return cmp.Compare(x.Time, y.Time) })
	return number(out)
}

// content is line without what depends on the numbers of packets and
// connections.
func content(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		l = regexp.MustCompile(`^#\d+ `).ReplaceAllString(l, "")
		out[i] = regexp.MustCompile(`(call|reply) \d+-\d+`).ReplaceAllString(l, "$1")
	}
	return out
}

// A frame that was captured bare and mirrored, or bare and in an overlay, is one
// frame.
func TestBareAndWrapped(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-midstream.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		packets := load(t, "../samples/"+name)
		want := content(sequential(packets, 64, decode.Options{}))
		for _, k := range someKinds(func(k *wrap.Kind) bool { return k.Link == capture.LinkEthernet }) {
			t.Run(name+"/"+k.Name, func(t *testing.T) {
				mirror := wrapped(packets, k, 0, 0)
				same(t, "bare first", content(sequential(both(packets, mirror, 1), 64, decode.Options{})), want)
				same(t, "mirror first", content(sequential(both(mirror, packets, 1), 64, decode.Options{})), want)
			})
		}
	}
}

// A mirror may cut its packets. Where the setup was captured elsewhere as well, and not cut, that point is followed,
// whichever copy comes first: nothing is missing, and a setup that was cut begins no second connection.
func TestBareAndCut(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs41-restart.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst"} {
		packets := load(t, "../samples/"+name)
		want, setups := decodedWithSetups(packets)
		for _, k := range someKinds(func(k *wrap.Kind) bool { return k.Name == "erspan2" || k.Name == "vxlan" }) {
			for _, n := range []int{100, 120, 122, 128, 140, 200, 256} {
				if strings.Contains(name, "ipv6") {
					n += 20
				}
				mirror := wrapped(cutAt(packets, n), k, 0, 0)
				for _, order := range []struct {
					name    string
					packets []capture.Packet
				}{{"whole first", both(packets, mirror, 1000)}, {"cut first", both(mirror, packets, 1000)}} {
					got, gotSetups := decodedWithSetups(order.packets)
					where := fmt.Sprintf("%s, %s cut to %d bytes, %s", name, k.Name, n, order.name)
					same(t, where, got, want)
					same(t, where+", connections", gotSetups, setups)
				}
			}
		}
	}
}

// decodedWithSetups returns the transactions, and what was captured of the setup of each connection.
func decodedWithSetups(packets []capture.Packet) (lines, setups []string) {
	lines = content(sequential(packets, 64, decode.Options{Observers: []decode.Observer{{Closed: func(c *rdma.Connection) {
		if c.Fabric != rdma.RoCEv2 {
			return
		}
		for i := range c.Setup {
			c.Setup[i].Frame = rdma.Ref{}
		}
		setups = append(setups, fmt.Sprintf("%+v %+v %d %v", c.Ends, c.Setup, c.MTU, c.State))
	}}}}))
	return lines, setups
}

// Two overlays with the same addresses are two networks, even if they carry the
// same bytes.
func TestTenants(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-basic.pcap.zst", "rocev2-nfs41-midstream.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		packets := load(t, "../samples/"+name)
		want := content(sequential(packets, 64, decode.Options{}))
		for _, kind := range []string{"vxlan", "geneve", "nvgre", "gre-key", "pppoe"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				var k [2]wrap.Kind
				for i := range k {
					for _, k[i] = range wrap.Kinds(uint32(0x100 + i)) {
						if k[i].Name == kind {
							break
						}
					}
				}
				got := sequential(both(wrapped(packets, k[0], 0, 0), wrapped(packets, k[1], 0, 0), 1), 64, decode.Options{})
				var tenant [2][]string
				for _, l := range got {
					var id int
					if _, err := fmt.Sscanf(l, "#%d", &id); err != nil {
						t.Fatal(err)
					}
					tenant[(id+1)%2] = append(tenant[(id+1)%2], l)
				}
				same(t, "first", content(tenant[0]), want)
				same(t, "second", content(tenant[1]), want)
			})
		}
	}
}

// A tunnel makes packets longer than its network carries: then its own
// datagrams are fragments, or those within.
func TestWrappedInFragments(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-basic.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		packets := load(t, "../samples/"+name)
		want, stats := run(t, packets, 64, decode.Options{})
		for _, k := range someKinds(func(k *wrap.Kind) bool { return k.Outer && k.Name != "ip-in-ip6" }) {
			inner := wrapped(packets, k, 0, 0)
			var cut []capture.Packet
			for i := range inner {
				cut = append(cut, fragments(&inner[i], 800)...)
			}
			outer := slices.Clone(cut)
			for _, c := range []struct {
				name    string
				packets []capture.Packet
			}{{"fragments", cut}, {"fragments in a tunnel", wrapped(outer, k, 0, 0)}} {
				got, s := run(t, number(slices.Clone(c.packets)), 64, decode.Options{})
				same(t, k.Name+" "+c.name, content(got), content(want))
				if s.GoodICRC != stats.GoodICRC || s.BadICRC != 0 || s.Fragments == 0 {
					t.Errorf("%s, %s: %+v", k.Name, c.name, s)
				}
			}
		}
	}
}

// fragments cuts an Ethernet frame with an IPv4 packet of more than mtu bytes.
func fragments(p *capture.Packet, mtu int) []capture.Packet {
	const ether, head = 14, 20
	b := p.Data
	if len(b)-ether <= mtu || b[12] != 8 || b[13] != 0 || b[ether+9] == 6 {
		return []capture.Packet{*p}
	}
	var out []capture.Packet
	step := (mtu - head) &^ 7
	payload := b[ether+head:]
	for at := 0; at < len(payload); at += step {
		n := min(step, len(payload)-at)
		f := append(bytes.Clone(b[:ether+head]), payload[at:at+n]...)
		binary.BigEndian.PutUint16(f[ether+2:], uint16(head+n))
		offset := uint16(at / 8)
		if at+n < len(payload) {
			offset |= 0x2000
		}
		binary.BigEndian.PutUint16(f[ether+6:], offset)
		q := *p
		q.Data, q.Length = f, uint32(len(f))
		out = append(out, q)
	}
	return out
}
