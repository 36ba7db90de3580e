package mountstats

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const several = `device rootfs mounted on / with fstype rootfs
device proc mounted on /proc with fstype proc
device nfsd mounted on /proc/fs/nfsd with fstype nfsd
device [fd00::1]:/export mounted on /mnt with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.1,proto=rdma6,port=20049,clientaddr=fd00::2
	age:	8
	sec:	flavor=1,pseudoflavor=1
	news:	1 2 3
	RPC iostats version: 1.1  p/v: 100003/4 (nfs)
	xprt:	rdma 0 0 1 0 0 188 187 0 188 0 22 32 85 7868792 1398517 200 0 164912 3 0 1 0 0 44 71 0 0
	xprt:	rdma 0 0 1 0 0 5 5 0 188 0 22 32 85 7868792 1398517 200 0 164912 3 0 1 0 0 44 71 0 0
	xprt:	newer 1 2
	per-op statistics
	        NULL: 1 1 0 40 24 58 10 70 0
	        READ: 11 12 1 1892 1263472 3 124 129 2
	     BROKEN: 1 2 x 4 5 6 7 8
	     SHORT: 1 2

device server:/old mounted on /old with fstype nfs statvers=1.0
	opts:	rw,vers=3,proto=tcp
	RPC iostats version: 1.0  p/v: 100003/3 (nfs)
	xprt:	tcp 704 1 1 0 0 5 5 0 5 0
	per-op statistics
	        NULL: 1 1 0 40 24 58 10 70
`

// TestCut makes sure that a file that ends within a line gives no wrong numbers: 129 is no 12, and errors that are not
// there are not errors of an old version.
func TestCut(t *testing.T) {
	whole, _, err := Parse(strings.NewReader(several))
	if err != nil {
		t.Fatal(err)
	}
	for n := range several {
		mounts, s, err := Parse(strings.NewReader(several[:n]))
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range mounts {
			for k := range m.Ops {
				if m.Ops[k] != whole[i].Ops[k] {
					t.Fatalf("%q: %+v", several[max(n-40, 0):n], m.Ops[k])
				}
			}
		}
		at := strings.LastIndexByte(several[:n], '\n') + 1
		if strings.TrimSpace(several[at:n]) != "" && s.Malformed == 0 {
			t.Fatalf("%q: not counted", several[at:n])
		}
	}
}

func TestParse(t *testing.T) {
	mounts, s, err := Parse(strings.NewReader(several))
	if err != nil || len(mounts) != 2 || s != (Stats{Malformed: 2}) {
		t.Fatalf("%d mounts, %+v, %v", len(mounts), s, err)
	}
	m := mounts[0]
	if m.Server() != "fd00::1" || m.Point != "/mnt" || m.Type != "nfs4" || m.Version != "1.1" || m.Age != 8 || m.Option("clientaddr") != "fd00::2" ||
		m.Option("none") != "" || m.Program != "nfs" || m.ProgramNumber != 100003 || m.ProgramVersion != 4 || len(m.Transports) != 3 {
		t.Errorf("%+v", m)
	}
	if x := m.Transports[0]; x.Protocol != "rdma" || len(x.Numbers) < 21 || x.Numbers[5] != 188 || x.Numbers[20] != 1 {
		t.Errorf("%+v", x)
	}
	if len(m.Ops) != 2 || m.Ops[1] != (Op{"READ", 11, 12, 1, 1892, 1263472, 3, 124, 129, 2, true}) {
		t.Errorf("%+v", m.Ops)
	}
	o := mounts[1]
	if o.Server() != "server" || o.ProgramVersion != 3 || len(o.Ops) != 1 || o.Ops[0].HasErrors {
		t.Errorf("%+v", o)
	}
}

func TestLimits(t *testing.T) {
	var b strings.Builder
	for i := range maxMounts + 3 {
		fmt.Fprintf(&b, "device s:/%d mounted on /m with fstype nfs statvers=1.1\n", i)
		for range 65 {
			b.WriteString("xprt: tcp 1\n")
		}
		b.WriteString("per-op statistics\n")
		for range 70 {
			b.WriteString("READ: 1 1 1 1 1 1 1 1 1\n")
		}
	}
	b.WriteString(strings.Repeat("x", 3*maxLine) + "\ndevice s:/" + strings.Repeat("y", 2*maxText) + "\n")
	mounts, s, err := Parse(strings.NewReader(b.String()))
	ops, xprts := 0, 0
	for _, m := range mounts {
		ops, xprts = ops+len(m.Ops), xprts+len(m.Transports)
	}
	if err != nil || len(mounts) != maxMounts || ops != maxOps || xprts != maxTransports || s.Beyond == 0 || s.Malformed != 1 {
		t.Errorf("%d mounts, %d operations, %d transports, %+v, %v", len(mounts), ops, xprts, s, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(several)
	b, err := os.ReadFile("../../../samples/rocev2-nfs41-recall.mountstats")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Fuzz(func(t *testing.T, text string) {
		mounts, _, err := Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mounts {
			m.Server()
			m.Option("vers")
		}
	})
}
