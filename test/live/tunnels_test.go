//go:build live && linux

package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// packets reads a capture.
func packets(t *testing.T, name string) (list []capture.Packet) {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
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

// decoded returns the transactions of packets without times.
func decoded(list []capture.Packet) (out []string, stats decode.Stats) {
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		out = append(out, fmt.Sprintf("%#x %d+%d R%d W%d %v", tx.XID, tx.Call.Bytes, tx.Reply.Bytes, tx.ReadBytes, tx.WriteBytes, tx.State))
	})
	d.Batch(&capture.Batch{Packets: list})
	d.Flush()
	return out, d.Stats()
}

func kinds(id uint32) []wrap.Kind {
	return slices.DeleteFunc(wrap.Kinds(id), func(k wrap.Kind) bool { return k.Link != capture.LinkEthernet })
}

// The default filter lets every wrapping through, tagged twice or not, and none
// with NoTunnels.
func TestTunnels(t *testing.T) {
	a, b := veth(t)
	send := sender(t, a)
	sample := packets(t, "../../samples/rocev2-nfs41-recall.pcap")
	want, _ := decoded(sample)
	if len(want) < 40 {
		t.Fatal(len(want))
	}
	for i, k := range kinds(9) {
		var sent []capture.Packet
		w := wrap.New(k, 9)
		tags := i % 3
		for _, p := range sample {
			f, wire := w.Frame(p.Data, int(p.Length))
			f = bytes.Clone(f)
			for range tags {
				f = slices.Concat(f[:12], []byte{0x88, 0xa8, 0x20, 7}, f[12:])
			}
			p.Data, p.Length = f, uint32(wire+4*tags)
			sent = append(sent, p)
		}
		for _, direct := range []bool{false, true} {
			r := open(t, live.Options{Interfaces: []string{b}, Filter: pcapfilter.Traffic{NoTunnels: direct}.Expr(), Segments: true})
			for _, p := range sent {
				send(p.Data)
			}
			got := drain(t, r)
			r.Close()
			if direct {
				if tx, _ := decoded(got); len(tx) > 0 {
					t.Errorf("%s, no tunnels: %d transactions", k.Name, len(tx))
				}
				continue
			}
			tx, _ := decoded(got)
			if !slices.Equal(tx, want) {
				t.Errorf("%s behind %d tags: %d transactions, want %d; %d packets of %d", k.Name, tags, len(tx), len(want), len(got), len(sent))
			}
		}
	}
}

// The commands show traffic in tunnels, and say so at the start.
func TestTunnelsShown(t *testing.T) {
	dump := os.Getenv("RPCRDMA_DUMP")
	const sample = "../../samples/rocev2-nfs41-recall.pcap"
	bare, err := exec.Command(dump, sample).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Count(string(bare), "\n")
	report := reported(t, dump, sample)
	for _, name := range []string{"vxlan", "geneve-options", "erspan3", "gre-key", "mpls", "pppoe", "macsec"} {
		t.Run(name, func(t *testing.T) {
			a, b := veth(t)
			i := slices.IndexFunc(kinds(9), func(k wrap.Kind) bool { return k.Name == name })
			w := wrap.New(kinds(9)[i], 9)
			file := filepath.Join(t.TempDir(), "a.pcapng")
			capturing := start(t, "RPCRDMA_DUMP", 1, "capture", "-i", b, "-w", file)
			listing := start(t, "RPCRDMA_DUMP", 2, "-i", b)
			top := start(t, "RPCRDMA_TOP", 3, "-i", b, "--batch", "0")
			direct := start(t, "RPCRDMA_DUMP", 4, "-i", b, "--no-tunnels")
			send := sender(t, a)
			for _, p := range packets(t, sample) {
				f, _ := w.Frame(p.Data, int(p.Length))
				send(f)
				time.Sleep(100 * time.Microsecond)
			}
			for _, p := range []*program{top, listing, capturing, direct} {
				p.stop(t)
			}
			for _, p := range []*program{top, listing, capturing} {
				if s := p.diag.String(); !strings.Contains(s, "taking RoCE, TCP port 20049, and all that tunnels and mirrors carry (VXLAN,") || !strings.Contains(s, "--no-tunnels") {
					t.Errorf("%s", s)
				}
			}
			if s := direct.diag.String(); !strings.Contains(s, "taking RoCE, TCP port 20049\n") || !strings.Contains(s, "0 packets captured") {
				t.Errorf("%s", s)
			}
			if n := strings.Count(listing.out.String(), "\n"); n != want {
				t.Errorf("%d transactions listed, want %d\n%s", n, want, &listing.diag)
			}
			if got := reported(t, dump, file); !equalCounts(got, report) {
				t.Errorf("captured: %v, want %v", got, report)
			}
			if got := table(t, top.out.String()); !equalCounts(got, report) {
				t.Errorf("rpcrdma-top: %v, want %v\n%s", got, report, &top.diag)
			}
		})
	}
}

func equalCounts(a, b map[string]counts) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

var wrongICRC = regexp.MustCompile(`ICRC +([0-9]+) good, ([0-9]+) wrong, ([0-9]+) not checked`)

// The soft RoCEv2 provider lets the kernel segment its packets, of unequal sizes.
// On loopback they are captured before that: every packet is found in there.
func TestOffload(t *testing.T) {
	replay, dump := os.Getenv("RPCRDMA_REPLAY"), os.Getenv("RPCRDMA_DUMP")
	if replay == "" || dump == "" {
		t.Fatal("RPCRDMA_REPLAY or RPCRDMA_DUMP is not set: run test/live/run")
	}
	for _, sample := range []string{"rocev2-nfs41-recall.pcap", "rocev2-nfs3-meta.pcap.zst", "rocev2-nfs3-longcall.pcap"} {
		t.Run(sample, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.pcapng")
			capturing := start(t, "RPCRDMA_DUMP", 1, "capture", "-i", "lo", "-w", file)
			listing := start(t, "RPCRDMA_DUMP", 2, "-i", "lo", "-q")
			direct := open(t, live.Options{Interfaces: []string{"lo"}, Filter: pcapfilter.Traffic{}.Expr(), Segments: true})
			out, err := exec.Command(replay, "run", "../../samples/"+sample, "builtin", "--yes", "--write", "--timing", "fast", "--provider", "rocev2", "-q").CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			list := drain(t, direct)
			capturing.stop(t)
			listing.stop(t)
			want, told := decoded(list)
			if told.BadICRC != 0 || told.Joined == 0 || told.NotSplit != 0 || len(want) < 20 {
				t.Errorf("with the kernel's sizes: %d transactions, %+v", len(want), told)
			}
			segments := 0
			for i := range list {
				if list[i].Segment != 0 {
					segments++
				}
				list[i].Segment = 0
			}
			var u syscall.Utsname
			if syscall.Uname(&u) == nil && (u.Release[0] > '6' || u.Release[0] == '6' && u.Release[2] >= '2') && segments != int(told.Joined) {
				t.Errorf("the kernel told of %d datagrams of %d", segments, told.Joined)
			}
			got, found := decoded(list)
			if !slices.Equal(got, want) || found.GoodICRC != told.GoodICRC || found.JoinedPackets != told.JoinedPackets {
				t.Errorf("without the kernel's sizes: %d transactions, %+v\nwith %d, %+v", len(got), found, len(want), told)
			}
			written, err := exec.Command(dump, "-q", file).Output()
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"-i": listing.out.String(), "capture": string(written)} {
				m := wrongICRC.FindStringSubmatch(text)
				if m == nil || m[1] != fmt.Sprint(told.GoodICRC) || m[2] != "0" || m[3] != "0" || !strings.Contains(text, fmt.Sprintf("%d datagrams of %d packets", told.Joined, told.JoinedPackets)) {
					t.Errorf("%s: %v\n%s", name, m, text)
				}
			}
			t.Logf("%d packets of RoCE in %d datagrams, of which the kernel told the sizes of %d; %d transactions, none with a wrong ICRC", told.GoodICRC, told.Packets, segments, len(want))
		})
	}
}
