package live

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
)

const testBlock = 4096

// fake is a ring that no kernel fills.
func fake(name string, tap, blocks int, retire time.Duration) *ring {
	return &ring{name: name, tap: tap, fd: -1, mem: make([]byte, blocks*testBlock), layout: layout{testBlock, blocks, retire}, index: tap + 1}
}

func fakeReader(rings ...*ring) *reader {
	return &reader{rings: rings, stopper: stopper{wake: -1}}
}

func text(b *capture.Batch) string {
	var s []string
	for _, p := range b.Packets {
		s = append(s, fmt.Sprintf("%d:%s", p.Tap, p.Data))
	}
	return strings.Join(s, " ")
}

func p(ms int, data string) packet { return packet{at: at(ms), data: data, hatype: 1} }

// Blocks are read in turn and given back when the last packet was copied.
func TestRing(t *testing.T) {
	g := fake("a", 0, 4, time.Millisecond)
	r := fakeReader(g)
	var b capture.Batch
	now := time.Now()
	for round := range 10 {
		i := round % 4
		fillBlock(g.block(i), p(1, "x"), packet{at: at(1), data: "echo", hatype: 772, pkttype: packetOutgoing}, p(2, fmt.Sprint(round)))
		b.Reset()
		r.fill(&b, now)
		if got, want := text(&b), fmt.Sprintf("0:x 0:%d", round); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if b.Packets[1].Number != uint64(2*round+2) {
			t.Errorf("number %d", b.Packets[1].Number)
		}
		if atomic.LoadUint32(g.status(i)) != 0 {
			t.Error("the block was not given back")
		}
	}
}

// A packet waits until another ring cannot have an earlier one.
func TestMerge(t *testing.T) {
	a, c := fake("a", 0, 8, 10*time.Millisecond), fake("c", 1, 8, 10*time.Millisecond)
	r := fakeReader(a, c)
	var b capture.Batch
	now := time.Now()
	step := func(want string, wait bool) {
		t.Helper()
		b.Reset()
		until := r.fill(&b, now)
		if got := text(&b); got != want || !until.IsZero() != wait {
			t.Fatalf("%q, want %q; waits until %v", got, want, until)
		}
	}
	fillBlock(a.block(0), p(10, "a10"), p(30, "a30"))
	step("", true)
	fillBlock(c.block(0), p(5, "c5"), p(20, "c20"))
	step("1:c5 0:a10 1:c20", true) // a30 waits for c
	now = now.Add(c.patience() / 2)
	step("", true)
	now = now.Add(c.patience())
	step("0:a30", false) // c had its time
	step("", false)

	// Half of a ring waits: rather out of order than lost.
	for i := range 5 {
		fillBlock(a.block(1+i), p(100+i, fmt.Sprint(i)))
	}
	step("0:0", true)
	now = now.Add(c.patience())
	step("0:1 0:2 0:3 0:4", false)
}

// After Stop what is there is delivered, then comes the end.
func TestStop(t *testing.T) {
	a, c := fake("a", 0, 4, time.Millisecond), fake("c", 1, 4, time.Millisecond)
	r := fakeReader(a, c)
	fillBlock(a.block(0), p(10, "a10"))
	fillBlock(a.block(1), p(20, "a20"))
	r.Stop()
	r.Stop()
	var got []string
	var b capture.Batch
	for {
		err := r.Read(&b)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text(&b))
	}
	if strings.Join(got, " ") != "0:a10 0:a20" {
		t.Error(got)
	}
	if err := r.Read(&b); err != io.EOF || len(b.Packets) != 0 {
		t.Error(err)
	}
	r.Close()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// The failure of an interface comes after the packets.
func TestFailure(t *testing.T) {
	a := fake("a", 0, 4, time.Millisecond)
	r := fakeReader(a)
	fillBlock(a.block(0), p(10, "a10"))
	r.failed = &InterfaceError{Interface: "a", Text: "the interface went down"}
	var b capture.Batch
	if err := r.Read(&b); err != nil || text(&b) != "0:a10" {
		t.Fatalf("%v, %s", err, text(&b))
	}
	var e *InterfaceError
	if err := r.Read(&b); !errors.As(err, &e) || err.Error() != "a: the interface went down" {
		t.Error(err)
	}
}

func TestDamagedBlock(t *testing.T) {
	a := fake("a", 0, 4, time.Millisecond)
	r := fakeReader(a)
	fillBlock(a.block(0), p(10, "a10"), p(11, "a11"))
	native.PutUint32(a.block(0)[blockHeader+recNext:], 1<<30)
	fillBlock(a.block(1), p(12, "a12"))
	var b capture.Batch
	r.fill(&b, time.Now())
	if list, n := r.Problems(); text(&b) != "0:a10 0:a12" || n != 1 || list[0].File != "a" {
		t.Errorf("%s, %d problems", text(&b), n)
	}
	r.Close()
	if err := r.Read(&b); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// With any, each interface becomes a tap.
func TestTaps(t *testing.T) {
	a := fake("any", -1, 4, time.Millisecond)
	a.index = 0
	r := fakeReader(a)
	const none = 1 << 30 // no interface has it
	fillBlock(a.block(0), packet{data: "x", hatype: 1, index: none}, packet{data: "y", hatype: 65534, index: none + 1}, packet{data: "z", hatype: 1, index: none})
	var b capture.Batch
	r.fill(&b, time.Now())
	if b.Packets[0].Tap != 0 || b.Packets[1].Tap != 1 || b.Packets[2].Tap != 0 {
		t.Error(text(&b))
	}
	taps := r.Taps()
	if len(taps) != 2 || taps[0].Link != capture.LinkEthernet || taps[1].Link != capture.LinkSLL2 || taps[1].Name != fmt.Sprint(none+1) {
		t.Errorf("%+v", taps)
	}
}

func TestOpenErrors(t *testing.T) {
	for want, opt := range map[string]Options{
		"no interface named":         {},
		"named twice":                {Interfaces: []string{"lo", "lo"}},
		"any is all":                 {Interfaces: []string{"any", "lo"}},
		"there is no such interface": {Interfaces: []string{"no-such-iface"}},
		"a block of 100 bytes":       {Interfaces: []string{"lo"}, BlockSize: 100},
		"a ring of -1 bytes":         {Interfaces: []string{"lo"}, RingSize: -1},
		"a snapshot length of -1":    {Interfaces: []string{"lo"}, SnapLen: -1},
		"65 rings for an interface":  {Interfaces: []string{"lo"}, Rings: 65},
		"-1 rings for an interface":  {Interfaces: []string{"lo"}, Rings: -1},
		"exclude each other":         {Interfaces: []string{"lo"}, Rings: 2, Fanout: &Fanout{Group: 1}},
	} {
		if r, err := Open(opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
			if err == nil {
				r.Close()
			}
		}
	}
}

// The counters of an interface are the sums of its rings.
func TestRingStats(t *testing.T) {
	a, b, c := fake("a", 0, 4, time.Millisecond), fake("a", 0, 4, time.Millisecond), fake("c", 1, 4, time.Millisecond)
	for i, g := range []*ring{a, b, c} {
		g.stats = Stats{Interface: g.name, Tap: g.tap, Received: uint64(10 + i), Dropped: uint64(1 + i)}
	}
	r := fakeReader(a, b, c)
	want := []Stats{
		{Interface: "a", Received: 21, Dropped: 3, Rings: []RingStats{{10, 1}, {11, 2}}},
		{Interface: "c", Tap: 1, Received: 12, Dropped: 3},
	}
	if got := r.Stats(); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(r.Stats(), want) {
		t.Errorf("%+v", got)
	}
}

func TestPermissionError(t *testing.T) {
	err := error(&PermissionError{unix.EPERM})
	if s := err.Error(); !strings.Contains(s, "CAP_NET_RAW") || !strings.Contains(s, "setcap cap_net_raw+ep /") || !strings.Contains(s, "sudo") {
		t.Error(s)
	}
	if !errors.Is(err, os.ErrPermission) {
		t.Error("not a permission error")
	}
}

func TestLayout(t *testing.T) {
	for _, c := range []struct {
		opt           Options
		block, blocks int
		retire        time.Duration
	}{
		{Options{Interfaces: []string{"a"}}, 1 << 20, 64, defaultRetire},
		{Options{Interfaces: []string{"a", "b"}}, 1 << 20, 32, defaultRetire},
		{Options{Interfaces: []string{"a", "b"}, Rings: 4}, 1 << 20, 8, ringsRetire},
		{Options{Interfaces: []string{"a"}, Rings: 64}, 128 << 10, 8, ringsRetire},
		{Options{Interfaces: []string{"a"}, Rings: 2, Retire: time.Second}, 1 << 20, 32, time.Second},
		{Options{Interfaces: []string{"a"}, RingSize: 1 << 20}, 128 << 10, 8, defaultRetire},
		{Options{Interfaces: []string{"a"}, RingSize: 1}, 64 << 10, 4, defaultRetire},
		{Options{Interfaces: []string{"a"}, RingSize: 8 << 20, BlockSize: 4 << 20}, 4 << 20, 4, defaultRetire},
	} {
		l, err := c.opt.layout()
		if err != nil || l.block != c.block || l.blocks != c.blocks || l.retire != c.retire {
			t.Errorf("%+v: %+v, %v", c.opt, l, err)
		}
	}
}

// The kernel takes the programs; no right is needed to give one to a socket of
// one's own.
func TestKernelTakesFilters(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	g := &ring{fd: fd}
	for _, expr := range []string{"", "udp port 4791", "vlan 5 and (host 192.0.2.1 or net fd00::/64)", "tcp[13] & 2 != 0 or ether host 02:00:00:00:00:01 or less 100"} {
		e, err := pcapfilter.Parse(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []pcapfilter.Frame{pcapfilter.Ethernet, pcapfilter.Network, pcapfilter.Mixed} {
			for _, all := range []*pcapfilter.Expr{e, pcapfilter.And(pcapfilter.Traffic{RPC: true}.Expr(), e)} {
				prog, err := all.Compile(pcapfilter.Options{Frame: f, Kernel: true, DropEcho: true, Snap: 96})
				if err != nil {
					t.Fatal(err)
				}
				if err := g.attach(prog); err != nil {
					t.Errorf("%q, frame %d: %v", expr, f, err)
				}
			}
		}
	}
}

func TestSince(t *testing.T) {
	for release, want := range map[string]bool{
		"6.2.0": true, "6.12.3-amd64": true, "7.0": true, "10.1": true, "6.1.0-rc2": false, "5.15.0-91-generic": false, "": false, "six.two": false,
	} {
		if got := since(release, 6, 2); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}

// What events need is told.
func TestNoEvents(t *testing.T) {
	sys := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(want string, opt Options) {
		t.Helper()
		opt.SysRoot = sys
		opt.Interfaces = append(opt.Interfaces, Events)
		if r, err := Open(opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v, not %q", r, err, want)
		}
	}
	fails("name no interface beside it", Options{Interfaces: []string{"lo"}})
	fails("not packets", Options{Promiscuous: true})
	fails("tracefs is not mounted", Options{})
	write("kernel/tracing/events/sunrpc/other/format", "")
	fails("modprobe rpcrdma", Options{})
	write("kernel/tracing/events/rpcrdma/other/format", "")
	fails("none of the known events", Options{})
	write("kernel/tracing/events/sunrpc/svc_process/format", "nothing")
	fails("none of the known events", Options{})
	if list, err := processors("0-2,5"); err != nil || fmt.Sprint(list) != "[0 1 2 5]" {
		t.Errorf("%v %v", list, err)
	}
	for _, bad := range []string{"", "1-", "a", "-1"} {
		if _, err := processors(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	write("kernel/security/lockdown", "none integrity [confidentiality]")
	if err := refused(sys, unix.EPERM); !strings.Contains(err.Error(), "locked down") {
		t.Error(err)
	}
}
