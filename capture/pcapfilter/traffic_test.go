package pcapfilter

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// v6 makes an IPv6 frame whose headers follow each other as given.
func v6(next byte, body ...byte) []byte {
	f := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(body)), next, 64}, make([]byte, 32)...)
	f[22], f[37], f[38], f[53] = 0xfd, 1, 0xfd, 2 // fd00::1 > fd00::2
	return append(append(f, body...), make([]byte, 40)...)
}

func v4(proto byte, frag uint16, options int, body ...byte) []byte {
	f := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45 + byte(options), 0, 0, 99, 0, 1, byte(frag >> 8), byte(frag), 64, proto, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
	f = append(f, make([]byte, 4*options)...)
	return append(append(f, body...), make([]byte, 40)...)
}

var (
	roce   = []byte{0xc0, 0, 0x12, 0xb7}      // ports 49152, 4791
	back   = []byte{0x12, 0xb7, 0xc0, 0}      // as some adapters answer
	iwarp  = []byte{0xc0, 0, 0x4e, 0x51}      // 20049
	other  = []byte{0xc0, 0, 0x30, 0x39}      // 12345
	nfs    = []byte{8, 1, 3, 0xad}            // 2049
	mount  = []byte{0x4e, 0x50, 3, 9}         // 20048
	header = func(next, length byte) []byte { // an extension header
		return append([]byte{next, length}, make([]byte, 6+8*int(length))...)
	}
)

func join(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// What is of interest is found behind tags, options, extension headers and in
// fragments.
func TestTraffic(t *testing.T) {
	usual, rpc, ports := Traffic{}, Traffic{RPC: true}, Traffic{TCPPorts: []uint16{12345, 7}}
	cases := []struct {
		name             string
		frame            []byte
		usual, rpc, port bool
	}{
		{"RoCEv2", v4(17, 0, 0, roce...), true, true, true},
		{"RoCEv2, don't fragment", v4(17, 0x4000, 0, roce...), true, true, true},
		{"RoCEv2, source port", v4(17, 0, 0, back...), true, true, true},
		{"RoCEv2 behind IP options", v4(17, 0, 10, roce...), true, true, true},
		{"RoCEv2 over IPv6", v6(17, roce...), true, true, true},
		{"behind hop-by-hop options", v6(0, join(header(17, 0), roce)...), true, true, true},
		{"behind three headers", v6(0, join(header(43, 1), header(60, 2), header(17, 0), roce)...), true, true, true},
		{"behind an authentication header", v6(51, join([]byte{17, 4}, make([]byte, 22), roce)...), true, true, true},
		{"other behind hop-by-hop options", v6(0, join(header(17, 0), other)...), false, false, false},
		{"first fragment", v4(17, 0x2000, 0, roce...), true, true, true},
		{"first fragment of other", v4(17, 0x2000, 0, other...), false, false, false},
		{"later fragment", v4(17, 0x2000|185, 0, 1, 2, 3, 4), true, true, true},
		{"last fragment", v4(17, 185, 0, 1, 2, 3, 4), true, true, true},
		{"last fragment of ICMP", v4(1, 185, 0, 1, 2, 3, 4), false, false, false},
		{"IPv6 first fragment", v6(44, join([]byte{17, 0, 0, 1, 1, 2, 3, 4}, roce)...), true, true, true},
		{"IPv6 first fragment of other", v6(44, join([]byte{17, 0, 0, 1, 1, 2, 3, 4}, other)...), false, false, false},
		{"IPv6 later fragment", v6(44, join([]byte{17, 0, 5, 0xa8, 1, 2, 3, 4}, other)...), true, true, true},
		{"IPv6 later fragment of ICMP", v6(44, join([]byte{58, 0, 5, 0xa8, 1, 2, 3, 4}, other)...), false, false, false},
		{"iWARP", v4(6, 0, 0, iwarp...), true, true, false},
		{"iWARP over IPv6", v6(6, iwarp...), true, true, false},
		{"iWARP's port over UDP", v4(17, 0, 0, iwarp...), false, false, false},
		{"RoCE's port over TCP", v4(6, 0, 0, roce...), false, false, false},
		{"TCP at a port of ours", v4(6, 0, 0, other...), false, false, true},
		{"NFS over TCP", v4(6, 0, 0, nfs...), false, true, false},
		{"NFS over UDP", v6(17, nfs...), false, true, false},
		{"MOUNT", v4(17, 0, 0, mount...), false, true, false},
		{"RoCEv1", join(make([]byte, 12), []byte{0x89, 0x15}, make([]byte, 60)), true, true, true},
		{"LLDP", join(make([]byte, 12), []byte{0x88, 0xcc}, make([]byte, 60)), false, false, false},
		{"ARP", join(make([]byte, 12), []byte{8, 6}, make([]byte, 28)), false, false, false},
		{"short frame", []byte{1, 2, 3}, false, false, false},
		{"cut IP header", v4(17, 0, 0, roce...)[:20], false, false, false},
	}
	for _, e := range []struct {
		t    Traffic
		want func(i int) bool
	}{
		{usual, func(i int) bool { return cases[i].usual }},
		{rpc, func(i int) bool { return cases[i].rpc }},
		{ports, func(i int) bool { return cases[i].port }},
	} {
		vm := compiled(t, e.t.Expr())
		for i, c := range cases {
			frames := [][]byte{c.frame}
			if len(c.frame) > 14 {
				one := tag(c.frame, 0x8100, 7)
				two := tag(one, 0x88a8, 8)
				frames = append(frames, one, two, tag(two, 0x9100, 9))
			}
			for tags, f := range frames {
				if got := run(t, vm, f); got != e.want(i) {
					t.Errorf("%+v: %s behind %d tags: %v", e.t, c.name, tags, got)
				}
			}
		}
	}
}

// Every wrapping that decode/link takes off passes, tagged or not, in fragments
// or not; nothing wrapped passes without tunnels.
func TestTunnels(t *testing.T) {
	usual, direct := compiled(t, Traffic{}.Expr()), compiled(t, Traffic{NoTunnels: true}.Expr())
	kinds := 0
	for _, inner := range [][]byte{v4(17, 0x4000, 0, roce...), v6(17, roce...), v4(17, 0, 0, other...)} {
		for _, k := range wrap.Kinds(7) {
			if k.Link != capture.LinkEthernet {
				continue
			}
			kinds++
			b, _ := wrap.New(k, 7).Frame(inner, len(inner))
			one := tag(b, 0x8100, 7)
			for tags, f := range [][]byte{b, one, tag(one, 0x88a8, 8)} {
				if !run(t, usual, f) || run(t, direct, f) {
					t.Errorf("%s behind %d tags: %v, without tunnels %v", k.Name, tags, run(t, usual, f), run(t, direct, f))
				}
			}
		}
	}
	if kinds < 80 {
		t.Errorf("%d kinds", kinds)
	}
	ether := func(typ ...byte) []byte { return join(make([]byte, 12), typ, make([]byte, 60)) }
	for name, c := range map[string]struct {
		frame []byte
		want  bool
	}{
		"GRE over IPv6":            {v6(47), true},
		"GRE, later fragment":      {v4(47, 185, 0), true},
		"VXLAN, later fragment":    {v4(17, 185, 0), true},
		"VXLAN's port as a source": {v4(17, 0, 0, 0x12, 0xb5, 0xc0, 0), false},
		"VXLAN's port of TCP":      {v4(6, 0, 0, 0xc0, 0, 0x12, 0xb5), false},
		"ESP":                      {v4(50, 0, 0), false},
		"MACsec, clear":            {ether(0x88, 0xe5, 0x20), true},
		"MACsec, changed":          {ether(0x88, 0xe5, 0x24), false},
		"MACsec, encrypted":        {ether(0x88, 0xe5, 0x2c), false},
		"PPPoE discovery":          {ether(0x88, 0x63), false},
		"MPLS, multicast":          {ether(0x88, 0x48), true},
	} {
		if got := run(t, usual, c.frame); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if s := (Traffic{RPC: true}).Direct(); s != "RoCE, TCP ports 20049, 111, 2049, 20048, UDP ports 111, 2049, 20048" {
		t.Error(s)
	}
	if s := (Traffic{}).Tunnels(); !strings.HasPrefix(s, "VXLAN, VXLAN-GPE, GENEVE, GRE") || (Traffic{NoTunnels: true}).Tunnels() != "" {
		t.Error(s)
	}
}

// All samples pass, except for what has nothing to do with RDMA.
func TestTrafficOfSamples(t *testing.T) {
	plain, tagged := frames(t)
	vm := compiled(t, Traffic{}.Expr())
	oracle := machine(t, "udp port 4791 or tcp port 20049 or roce or ((udp or tcp) and fragment)")
	yes := 0
	for _, f := range append(plain, tagged...) {
		got, want := run(t, vm, f), run(t, oracle, f)
		if got != want {
			t.Fatalf("%v for % x", got, f[:min(len(f), 60)])
		}
		if got {
			yes++
		}
	}
	if yes < 5000 || yes > len(plain)+len(tagged)-100 {
		t.Errorf("%d frames of %d pass", yes, len(plain)+len(tagged))
	}
}

func TestAnd(t *testing.T) {
	host, err := Parse("host 192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	vm := compiled(t, And(nil, Traffic{}.Expr(), nil, host))
	if !run(t, vm, v4(17, 0, 0, roce...)) || run(t, vm, v6(17, roce...)) || run(t, vm, v4(17, 0, 0, other...)) {
		t.Error("and is not and")
	}
	if And(nil, nil) != nil {
		t.Error("nothing is not everything")
	}
	if vm := compiled(t, nil); !run(t, vm, []byte{1}) {
		t.Error("no expression refuses a packet")
	}
}

// Of several tags the outermost counts.
func TestVLAN(t *testing.T) {
	f := v4(17, 0, 0, roce...)
	one := tag(f, 0x8100, 0xe007) // with priority
	two := tag(one, 0x88a8, 8)
	for _, c := range []struct {
		expr string
		want [3]bool
	}{
		{"vlan", [3]bool{false, true, true}},
		{"not vlan", [3]bool{true, false, false}},
		{"vlan 7", [3]bool{false, true, false}},
		{"vlan 8 and udp", [3]bool{false, false, true}},
		{"udp", [3]bool{true, true, true}},
		{"ether[12:2] == 0x8100", [3]bool{false, true, false}},
	} {
		vm := machine(t, c.expr)
		for i, f := range [][]byte{f, one, two} {
			if got := run(t, vm, f); got != c.want[i] {
				t.Errorf("%s, %d tags: %v", c.expr, i, got)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for expr, want := range map[string]string{
		"host":                       "at 5: host of what?",
		"host example.org":           "at 6: \"example.org\" is not an IP address",
		"udp and":                    "ends too early",
		"(udp":                       "a closing parenthesis is missing",
		"udp)":                       "unexpected \")\"",
		"udp tcp":                    "unexpected \"tcp\"",
		"port 70000":                 "is not a port",
		"portrange 9-3":              "is not a portrange",
		"portrange 9":                "is not a portrange",
		"net 192.0.2.1/24":           "192.0.2.0/24?",
		"tcp[":                       "\"\" is not a number",
		"tcp[2:3] = 1":               "1, 2 or 4 bytes",
		"tcp[2]":                     "a comparison is missing",
		"tcp[99999999] = 1":          "too far",
		"foo[2] = 1":                 "not a header",
		"len / 0 = 1":                "makes no sense",
		"len << 32 = 1":              "makes no sense",
		"vlan 5000":                  "0 to 4095",
		"ether":                      "ether what?",
		"ether host 192.0.2.1":       "not an Ethernet address",
		"ip port 7":                  "ip has no ports",
		"tcp host 192.0.2.1":         "tcp has no addresses",
		"ip proto 300":               "no such protocol",
		"udp; rm":                    "';' has no meaning here",
		strings.Repeat("(", 200):     "nested too deep",
		strings.Repeat("not ", 200):  "nested too deep",
		strings.Repeat(" udp", 9999): "too long",
		"len > " + strings.Repeat("(", 200) + "1": "nested too deep",
	} {
		_, err := Parse(expr)
		var e *Error
		if err == nil || !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", expr, err, want)
		}
	}
	if e, err := Parse("  "); e != nil || err != nil {
		t.Errorf("no expression: %v, %v", e, err)
	}
}

// Long expressions jump far; those beyond the kernel's limit are refused.
func TestLong(t *testing.T) {
	var list []string
	for i := range 150 {
		list = append(list, "host 10.1.0."+string(rune('0'+i%10)))
	}
	list = append(list, "host 192.0.2.1")
	vm := machine(t, strings.Join(list, " or "))
	if !run(t, vm, v4(17, 0, 0, roce...)) || run(t, vm, v6(17, roce...)) {
		t.Error("a long expression is wrong")
	}
	e, err := Parse(strings.Join(append(append(list, list...), append(list, list...)...), " or "))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Compile(Options{}); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
}

// Programs for the kernel use its extensions; they are accepted by the
// assembler, and end in a decision.
func TestKernelPrograms(t *testing.T) {
	for _, expr := range append([]string{""}, same...) {
		e, err := Parse(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Frame{Ethernet, Network, Mixed} {
			ins, err := And(e, Traffic{RPC: true}.Expr()).Compile(Options{Frame: f, Kernel: true, DropEcho: true, Snap: 96})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := bpf.Assemble(ins)
			if err != nil {
				t.Fatalf("%s: %v", expr, err)
			}
			end := raw[len(raw)-2:]
			if end[0] != (bpf.RawInstruction{Op: 6, K: 96}) || end[1] != (bpf.RawInstruction{Op: 6}) {
				t.Fatalf("%s ends in %v", expr, end)
			}
			for i, r := range raw { // linux/bpf_common.h: class 5 is a jump, operation 0 the unconditional one
				far := i + 1 + max(int(r.Jt), int(r.Jf))
				if r.Op == 5 {
					far = i + 1 + int(r.K)
				}
				if r.Op&7 == 5 && far >= len(raw) {
					t.Fatalf("%s: instruction %d jumps to %d of %d", expr, i, far, len(raw))
				}
			}
		}
	}
	if _, err := (*Expr)(nil).Compile(Options{DropEcho: true}); err == nil {
		t.Error("a program that is not for the kernel knows directions")
	}
}

// Whatever is parsed compiles to a program that runs, or is too long.
func FuzzParse(f *testing.F) {
	for _, s := range same {
		f.Add(s, odd()[0])
	}
	f.Add("vlan 5 and (port 80 or 443)", tag(odd()[1], 0x8100, 5))
	f.Add("ip6 multicast or roce or fragment", v6(44, 17, 0, 5, 0xa8))
	f.Fuzz(func(t *testing.T, expr string, frame []byte) {
		e, err := Parse(expr)
		if err != nil {
			var p *Error
			if !errors.As(err, &p) || p.Pos > len(expr) {
				t.Fatalf("%v", err)
			}
			return
		}
		ins, err := e.Compile(Options{})
		if err != nil {
			if !errors.Is(err, errTooLong) {
				t.Fatal(err)
			}
			return
		}
		vm, err := bpf.NewVM(ins)
		if err != nil {
			t.Fatalf("%q: %v", expr, err)
		}
		if _, err := vm.Run(frame); err != nil {
			t.Fatal(err)
		}
		if _, err := bpf.Assemble(ins); err != nil {
			t.Fatal(err)
		}
	})
}
