package connections

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/stack"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// write is a call that offers a Write chunk.
func write(segments ...rpcrdma.Segment) *rpcrdma.Header {
	return &rpcrdma.Header{Writes: []rpcrdma.WriteChunk{segments}}
}

func TestRegistration(t *testing.T) {
	seg := func(handle, length, page int) rpcrdma.Segment {
		return rpcrdma.Segment{Handle: uint32(handle), Length: uint32(length), Offset: uint64(page) * pageSize}
	}
	for _, c := range []struct {
		name string
		call func(i int) *rpcrdma.Header
		mode RegistrationMode
	}{
		{"no memory", func(int) *rpcrdma.Header { return &rpcrdma.Header{} }, RegistrationInline},
		{"counting low bytes of four regions", func(i int) *rpcrdma.Header { return write(seg(0x700+i%4<<8+i/4&0xff, 65536, i)) }, RegistrationFRWR},
		{"one handle, scattered pages", func(i int) *rpcrdma.Header { return write(seg(0x77, 4096, 10*i), seg(0x77, 4096, 10*i+5)) }, RegistrationAllPhysical},
		{"one handle, whole chunks", func(i int) *rpcrdma.Header { return write(seg(0x77, 65536, 16*i)) }, RegistrationPersistent},
		{"a few handles", func(i int) *rpcrdma.Header { return write(seg(0x77+i%5<<8, 65536, 16*i)) }, RegistrationPersistent},
		{"a handle for each page", func(i int) *rpcrdma.Header {
			return write(seg(i<<12, 4096, i), seg(i<<12+1<<10, 4096, i+1), seg(i<<12+2<<10, 100, i+2))
		}, RegistrationPages},
		{"new handles", func(i int) *rpcrdma.Header { return write(seg((i+1)*0x12300, 65536, i)) }, RegistrationPerCall},
		{"a version without credits, with Read chunks", func(i int) *rpcrdma.Header {
			return &rpcrdma.Header{Reads: []rpcrdma.ReadSegment{{Position: 148, Segment: seg(0x700+i&0xff, 65536, i)}}}
		}, RegistrationFRWR},
	} {
		room := 1000
		h := handles{room: &room}
		for i := range 100 {
			h.call(c.call(i))
		}
		r := h.guess()
		if r.Mode != c.mode || r.reason() == "" || r.text() == "" {
			t.Errorf("%s: %s (%s)", c.name, r.Mode, r.text())
		}
	}
	room := 2
	few := handles{room: &room}
	few.call(write(seg(1, 4096, 1)))
	if r := few.guess(); r.Mode != RegistrationUnknown || r.text() != "" {
		t.Errorf("one segment: %s", r.Mode)
	}
	for i := range 100 {
		few.call(write(seg((i+1)*0x12300, 65536, i)))
	}
	if r := few.guess(); r.Mode != RegistrationUnknown || room != 0 {
		t.Errorf("without room: %s", r.Mode)
	}
}

func TestCredits(t *testing.T) {
	figure10 := func(window, inFlight int) uint32 {
		if window-inFlight >= 8 {
			return 16
		}
		return uint32(min(16+2*inFlight, 76))
	}
	figure11 := func(asked int) uint32 {
		switch {
		case asked <= 10:
			return 10
		case asked <= 40:
			return uint32(asked)
		}
		return uint32(40 + (asked-40)/4)
	}
	for _, c := range []struct {
		name string
		asks bool
		say  func(i int) said
		want string
	}{
		{"Linux client", true, func(i int) said { return said{128, uint32(1 + i%9), 64} }, "asks for credits: always 128"},
		{"client that echoes", true, func(i int) said { return said{uint32(10 + i%3), 1, uint32(10 + i%3)} }, "asks for credits: what the server granted last"},
		{"figure 10", true, func(i int) said { return said{figure10(32, 1+i%32), uint32(1 + i%32), 32} }, "asks for credits: 16, and 2 for each call in flight when fewer than 8 credits are left (OSU 2006, figure 10)"},
		{"figure 10, some replies on their way", true, func(i int) said { return said{figure10(32+i%20/19*8, 1+i%32), uint32(1 + i%32), 32} }, "asks for credits: 16, and 2 for each call in flight when fewer than 8 credits are left (OSU 2006, figure 10)"},
		{"at random", true, func(i int) said { return said{uint32(i * 7919 % 100), uint32(1 + i%32), 32} }, ""},
		{"Linux server", false, func(int) said { return said{64, 0, 128} }, "grants credits: always 64"},
		{"server that echoes", false, func(i int) said { return said{uint32(i % 5), 0, uint32(i % 5)} }, "grants credits: what the call asks for; sometimes 0"},
		{"server with a bound", false, func(i int) said { return said{uint32(min(32, 16+i%40)), 0, uint32(16 + i%40)} }, "grants credits: what the call asks for, at most 32"},
		{"figure 11", false, func(i int) said { return said{figure11(7 * i), 0, uint32(7 * i)} }, "grants credits: about 39, and 0.25 of what is asked for beyond (OSU 2006, figure 11)"},
	} {
		var v creditValues
		for i := range 100 {
			v.add(c.say(i))
		}
		got := v.guess(c.asks)
		text := got.text("grants", "call asks for")
		if c.asks {
			text = got.text("asks for", "server granted last")
		}
		if text != c.want {
			t.Errorf("%s: %q, not %q", c.name, text, c.want)
		}
		k := state.NewWriter(nil)
		p := Policies{Asks: got, Registration: Registration{Mode: RegistrationFRWR, Counted: 7}}
		p.code(k)
		var q Policies
		r := state.NewReader(k.Bytes())
		if q.code(r); r.End() != nil || q != p {
			t.Errorf("%s: saved and read: %+v, not %+v (%v)", c.name, q, p, r.Err())
		}
	}
	if c := new(creditValues).guess(true); c.text("asks for", "") != "" {
		t.Error("nothing was seen, and a policy found")
	}
}

func TestStack(t *testing.T) {
	constant := func(n uint64) Credits { return Credits{Policy: CreditsConstant, Value: n, Messages: 100} }
	for _, c := range []struct {
		name           string
		private        bool
		depth          uint16
		mode           RegistrationMode
		asks, grants   Credits
		client, server stack.Stack
	}{
		{"Linux", true, 16, RegistrationFRWR, constant(128), constant(64), stack.Linux, stack.Linux},
		{"a client that nothing is known of", true, 16, RegistrationUnknown, Credits{}, Credits{}, stack.Unknown, stack.Unknown},
		{"OpenSolaris", false, 4, RegistrationPerCall, constant(34), constant(32), stack.OpenSolaris, stack.OpenSolaris},
		{"ntirpc", false, 1, RegistrationPerCall, constant(30), constant(30), stack.NTIRPC, stack.NTIRPC},
		{"libevpl", false, 16, RegistrationPerCall, constant(1), constant(1), stack.Libevpl, stack.Libevpl},
		{"an early libevpl", false, 16, RegistrationPerCall, constant(128), constant(0), stack.RFC5666, stack.Libevpl},
		{"an old Linux", false, 16, RegistrationPerCall, constant(32), constant(32), stack.RFC5666, stack.RFC5666},
		{"no calls", false, 1, RegistrationUnknown, Credits{}, Credits{}, stack.Unknown, stack.Unknown},
		{"another", false, 16, RegistrationPerCall, constant(128), constant(50), stack.RFC5666, stack.RFC5666},
	} {
		x := Connection{Connection: &rdma.Connection{Fabric: rdma.RoCEv2}, Policies: Policies{Registration{Mode: c.mode}, c.asks, c.grants}}
		for i := range x.Setup {
			x.Setup[i] = rdma.Setup{
				Message: rdma.SetupREQ, ResponderDepth: c.depth, InitiatorDepth: c.depth, PrivateBytesLen: rdma.PrivateDataSize,
				Private: rdma.PrivateData{Present: c.private},
			}
		}
		client, why := x.stack(0)
		server, _ := x.stack(1)
		if client != c.client || server != c.server {
			t.Errorf("%s: %s (%s) and %s", c.name, client, why, server)
		}
		if line := x.stackLine(0); (line == "") != (client == stack.Unknown) {
			t.Errorf("%s: %q", c.name, line)
		}
	}
}
