package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/scrubtest"
)

// ngBlock is a block of pcapng with options: pairs of a code and a value.
func ngBlock(typ uint32, fixed []byte, options ...any) []byte {
	body := fixed
	for i := 0; i < len(options); i += 2 {
		v := options[i+1].(string)
		body = binary.LittleEndian.AppendUint16(body, uint16(options[i].(int)))
		body = binary.LittleEndian.AppendUint16(body, uint16(len(v)))
		body = append(append(body, v...), make([]byte, -len(v)&3)...)
	}
	if len(options) > 0 {
		body = append(body, 0, 0, 0, 0)
	}
	n := uint32(12 + len(body))
	b := binary.LittleEndian.AppendUint32(nil, typ)
	b = binary.LittleEndian.AppendUint32(b, n)
	return binary.LittleEndian.AppendUint32(append(b, body...), n)
}

func le32(words ...uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// TestScrubBlocks: of a pcapng, packets are copied and nothing else.
func TestScrubBlocks(t *testing.T) {
	const canary = "Canary7x"
	name := filepath.Join(samples, "rocev2-nfs41-recall.pcap")
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in := ngBlock(0x0a0d0d0a, append(le32(0x1a2b3c4d, 1), bytes.Repeat([]byte{255}, 8)...), 1, canary, 2, canary, 3, canary, 4, canary, 2988, canary)
	in = append(in, ngBlock(1, le32(1, 0), 1, canary, 2, canary, 3, canary, 6, canary[:6], 8, canary, 11, "\x00"+canary, 12, canary, 15, canary)...)
	secrets := append(le32(0x544c534b, 8), canary...)
	names := append(append([]byte{1, 0, 13, 0}, "\x0a\x00\x00\x01"+canary+"\x00"...), 0, 0, 0, 0, 0, 0, 0)
	for typ, body := range map[uint32][]byte{10: secrets, 4: names, 0x0bad: append(le32(1), canary...), 0x40000bad: append(le32(1), canary...), 99: []byte(canary)} {
		in = append(in, ngBlock(typ, body)...)
	}
	var b capture.Batch
	for r.Read(&b) == nil {
		for _, p := range b.Packets {
			us := uint64(p.Time) / 1000
			fixed := append(le32(0, uint32(us>>32), uint32(us), uint32(len(p.Data)), p.Length), p.Data...)
			in = append(in, ngBlock(6, append(fixed, make([]byte, -len(p.Data)&3)...), 1, canary, 3, canary, 2988, canary)...)
		}
	}
	in = append(in, ngBlock(5, le32(0, 0, 0), 1, canary)...)
	if !bytes.Contains(in, []byte(canary)) {
		t.Fatal("no canary")
	}
	for _, args := range [][]string{{}, {"--keep", "names,addresses"}, {"--drop-data", "--users"}} {
		var out, diag bytes.Buffer
		code := run(append([]string{"scrub", "-w", "-", "-"}, args...), &cli.Streams{In: bytes.NewReader(in), Out: &out, Err: &diag})
		if code != cli.ExitOK || !strings.Contains(diag.String(), "281 packets, 100 messages") {
			t.Errorf("%v: exit code %d, %s", args, code, &diag)
		}
		for i := range len(canary) - 3 {
			if at := bytes.Index(out.Bytes(), []byte(canary[i:i+4])); at >= 0 {
				t.Errorf("%v: a piece of a canary at offset %d", args, at)
			}
		}
		kept := len(args) > 0 && args[0] == "--keep"
		for _, s := range []string{"deleg1", "192.0.2.1", "\xc0\x00\x02\x01"} {
			if got := bytes.Contains(out.Bytes(), []byte(s)); got != kept && (got || s != "192.0.2.1") {
				t.Errorf("%v: %q is there: %v", args, s, got)
			}
		}
	}
}

// TestScrubDamaged: of a damaged capture, what comes before is copied, and the exit code says so.
func TestScrubDamaged(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(samples, "iwarp-nfs41-recall.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{len(b) / 2, len(b) - 7, 30} {
		var out, diag bytes.Buffer
		code := run([]string{"scrub", "-w", "-", "-"}, &cli.Streams{In: bytes.NewReader(b[:n]), Out: &out, Err: &diag})
		if code != cli.ExitDamaged || bytes.Contains(out.Bytes(), []byte("deleg")) {
			t.Errorf("%d bytes: exit code %d, %s", n, code, &diag)
		}
	}
}

// TestScrubSame: reports of a copy say the same but for names and addresses. test/scrub compares all captures.
func TestScrubSame(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-midstream.pcap.zst", "rocev2-nfs3-loss.both.pcapng.zst", "rocev2-nfs3-snaplen256.pcap.zst"} {
		in := filepath.Join(samples, name)
		copied := filepath.Join(t.TempDir(), name+".pcapng")
		say := func(args ...string) []byte {
			var out, diag bytes.Buffer
			if code := run(args, &cli.Streams{Out: &out, Err: &diag}); code != cli.ExitOK {
				t.Errorf("%v: exit code %d, %s", args, code, &diag)
			}
			return bytes.ReplaceAll(out.Bytes(), []byte(name+".pcapng"), []byte(name))
		}
		say("scrub", "-w", copied, in)
		for _, command := range []string{"report", "check", "why", "connections", "sessions"} {
			if d := scrubtest.Differ(say(command, "-T", "json", in), say(command, "-T", "json", copied)); d != "" {
				t.Errorf("%s: %s: %s", name, command, d)
			}
		}
	}
}
