package pcapfilter

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/rpcrdma/toolkit/capture"
)

// frames are packets of the samples; with some of them a second time behind
// VLAN tags.
func frames(t testing.TB) (plain, tagged [][]byte) {
	t.Helper()
	files, err := filepath.Glob("../../samples/*.pcap*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, name := range files {
		r, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b capture.Batch
		for n := 0; n < 400; {
			err := r.Read(&b)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range b.Packets {
				d := append([]byte(nil), p.Data...)
				plain = append(plain, d)
				if n%7 == 0 {
					tagged = append(tagged, tag(d, 0x8100, 0x2005))
				}
				n++
			}
		}
		r.Close()
	}
	plain = append(plain, odd()...)
	return plain, tagged
}

func tag(frame []byte, typ, tci uint16) []byte {
	out := append([]byte(nil), frame[:12]...)
	out = append(out, byte(typ>>8), byte(typ), byte(tci>>8), byte(tci))
	return append(out, frame[12:]...)
}

// odd are frames that the samples lack.
func odd() [][]byte {
	eth := func(typ uint16, body ...byte) []byte {
		f := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0, 0x12, 0x34, 0x56, byte(typ >> 8), byte(typ)}
		return append(append(f, body...), make([]byte, 60)...)
	}
	v4 := func(proto byte, frag uint16, port uint16) []byte {
		return eth(0x0800, 0x45, 0, 0, 80, 0, 1, byte(frag>>8), byte(frag), 64, proto, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7,
			byte(port>>8), byte(port), 0x12, 0xb7)
	}
	return [][]byte{
		v4(17, 0, 1000), v4(17, 0x2000, 1000), v4(17, 185, 1000), v4(6, 185, 20049), v4(6, 0, 20049), v4(1, 0, 8<<8), v4(132, 0, 2049),
		eth(0x0806, 0, 1, 8, 0, 6, 4, 0, 1, 1, 2, 3, 4, 5, 6, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2),
		eth(0x8035, 0, 1, 8, 0, 6, 4, 0, 3, 1, 2, 3, 4, 5, 6, 192, 0, 2, 9, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2),
		eth(0x8915, 1, 2, 3),
		eth(0x88cc, 1, 2, 3),
	}
}

func run(t testing.TB, vm *bpf.VM, frame []byte) bool {
	t.Helper()
	n, err := vm.Run(frame)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func machine(t testing.TB, expr string) *bpf.VM {
	t.Helper()
	e, err := Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, e)
}

func compiled(t testing.TB, e *Expr) *bpf.VM {
	t.Helper()
	ins, err := e.Compile(Options{})
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(ins)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// tcpdump compiles an expression with libpcap.
func tcpdump(t *testing.T, expr string) *bpf.VM {
	t.Helper()
	out, err := exec.Command("tcpdump", "-y", "EN10MB", "-ddd", expr).Output()
	if err != nil {
		t.Fatalf("tcpdump: %v", err)
	}
	var raw []bpf.RawInstruction
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var r bpf.RawInstruction
		if i == 0 {
			continue // their number
		}
		if _, err := fmt.Sscan(line, &r.Op, &r.Jt, &r.Jf, &r.K); err != nil {
			t.Fatal(err)
		}
		raw = append(raw, r)
	}
	ins, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatalf("%s: tcpdump uses unknown instructions", expr)
	}
	vm, err := bpf.NewVM(ins)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// same mean the same here and in tcpdump for frames without tags.
var same = []string{
	"udp", "tcp", "not udp", "udp or tcp", "not (udp or tcp)", "ip and udp", "ip", "ip6", "arp", "rarp", "icmp", "igmp", "sctp",
	"udp port 4791", "port 20049", "src port 4791", "dst port 4791", "tcp dst port 20049", "udp src or dst port 4791", "src and dst port 4791",
	"portrange 100-5000", "udp portrange 4000-5000", "tcp src portrange 20000-20050", "port 111 or 20049", "udp port 111 or 4791",
	"host 192.0.2.1", "src host 192.0.2.1", "dst host 192.0.2.2", "src 192.0.2.1", "not host 192.0.2.1", "ip host 192.0.2.1", "arp host 192.0.2.2",
	"src and dst host 192.0.2.1", "host 192.0.2.1 and not port 4791", "host 192.0.2.1 and port 4791 or port 20049",
	"udp and (host 192.0.2.1 or fd00::2)", "udp port 4791 and not src host 192.0.2.2", "host 192.0.2.1 and udp",
	"net 192.0.2.0/24", "src net 192.0.2.0/30", "net 198.51.100.0/24", "net 0.0.0.0/0", "net fd00::/64", "src net fd00::/127", "dst net fd00::2/128",
	"host fd00::1", "ip6 host fd00::1", "dst host fd00::2",
	"ether host 52:54:00:12:34:56", "ether src 52:54:00:12:34:56", "ether dst host ff:ff:ff:ff:ff:ff", "ether proto 0x8915", "ether proto 0x800", "ip proto 17", "ip6 proto 17",
	"broadcast", "multicast", "ether multicast", "ip multicast", "ip6 multicast",
	"less 200", "greater 200", "len > 100", "len <= 1082", "len - 14 == 200",
	"tcp[13] & 2 != 0", "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", "ip[6:2] & 0x1fff != 0", "ip[0] & 0xf == 5", "ether[12:2] = 0x800",
	"ip[8] < 64 || ip6[7] >= 64", "ip[2:2] >> 8 == 4", "icmp[icmptype] = 8", "ip[16:4] == 0xc0000202",
	"!(udp && dst port 4791) && !tcp",
}

// wider mean more here for IPv6: extension headers are looked through, and
// bytes of upper headers are found, which tcpdump does for IPv4 only.
var wider = []string{"icmp6", "udp[4:2] > 100", "udp[8] & 0xf0 == 0x10"}

// Where tcpdump is, its compiler is the judge. Without it the expressions are
// still compiled and run.
func TestAgainstTcpdump(t *testing.T) {
	_, err := exec.LookPath("tcpdump")
	judge := err == nil
	t.Logf("compared with tcpdump: %v", judge)
	plain, _ := frames(t)
	for i, expr := range append(same, wider...) {
		ours := machine(t, expr)
		if !judge {
			for _, f := range plain {
				run(t, ours, f)
			}
			continue
		}
		theirs := tcpdump(t, expr)
		bad, yes := 0, 0
		for _, f := range plain {
			want := run(t, theirs, f)
			got := run(t, ours, f)
			if got != want && !(i >= len(same) && got && f[12] == 0x86 && f[13] == 0xdd) {
				bad++
			}
			if want {
				yes++
			}
		}
		if bad > 0 {
			t.Errorf("%s: differs from tcpdump on %d frames of %d, of which it takes %d", expr, bad, len(plain), yes)
		}
	}
}

// The same with a tag in each frame: what tcpdump calls "vlan and EXPR".
func TestTaggedAgainstTcpdump(t *testing.T) {
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Log("no tcpdump: not compared")
		return
	}
	_, tagged := frames(t)
	for _, expr := range []string{"udp", "tcp port 20049", "udp port 4791 and host 192.0.2.1", "ip6", "net 192.0.2.0/24", "tcp[13] & 2 != 0"} {
		for _, both := range [][2]string{{"vlan and " + expr, expr}, {"vlan 5 and " + expr, "vlan 5 and " + expr}, {"vlan 6 and " + expr, "vlan 6 and " + expr}} {
			theirs, ours := tcpdump(t, both[0]), machine(t, both[1])
			for _, f := range tagged {
				if got, want := run(t, ours, f), run(t, theirs, f); got != want {
					t.Fatalf("%s: %v, tcpdump %v", both[1], got, want)
				}
			}
		}
	}
}
