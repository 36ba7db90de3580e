package capture

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// packetSource is what the readers of gopacket have in common.
type packetSource interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
}

func compare(t *testing.T, src packetSource, ps []Packet) {
	t.Helper()
	for i := range ps {
		p := &ps[i]
		data, ci, err := src.ReadPacketData()
		if err != nil {
			t.Fatalf("packet %d: gopacket: %v", i+1, err)
		}
		if !bytes.Equal(data, p.Data) || ci.Timestamp.UnixNano() != p.Time || ci.Length != int(p.Length) || ci.CaptureLength != len(p.Data) || ci.InterfaceIndex != int(p.Tap) {
			t.Fatalf("packet %d: gopacket has %+v, want %+v", i+1, ci, *p)
		}
	}
	if _, _, err := src.ReadPacketData(); err != io.EOF {
		t.Fatalf("gopacket: %v", err)
	}
}

// gopacket reads what Writer writes.
func TestGopacketReads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	ps := randomPackets(rnd, 300, 1, 4e18)
	src, err := pcapgo.NewReader(bytes.NewReader(write(t, WriterOptions{Format: Pcap}, ps)))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, src, ps)

	ps = randomPackets(rnd, 300, 1, 4e18)
	ng, err := pcapgo.NewNgReader(bytes.NewReader(write(t, WriterOptions{}, ps)), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, ng, ps)

	ps = randomPackets(rnd, 300, 4, 4e18)
	ng, err = pcapgo.NewNgReader(bytes.NewReader(write(t, WriterOptions{Taps: someTaps}, ps)), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, ng, ps)
}

// Reader reads what gopacket writes, and both read it alike.
func TestGopacketWrites(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	ps := randomPackets(rnd, 300, 1, 4e18)
	info := func(p *Packet) gopacket.CaptureInfo {
		return gopacket.CaptureInfo{Timestamp: time.Unix(0, p.Time), CaptureLength: len(p.Data), Length: int(p.Length)}
	}
	var micro, nano, ng bytes.Buffer
	wm, wn := pcapgo.NewWriter(&micro), pcapgo.NewWriterNanos(&nano)
	wg, err := pcapgo.NewNgWriter(&ng, layers.LinkTypeEthernet)
	if err := errors.Join(err, wm.WriteFileHeader(262144, layers.LinkTypeEthernet), wn.WriteFileHeader(262144, layers.LinkTypeEthernet)); err != nil {
		t.Fatal(err)
	}
	for i := range ps {
		p := &ps[i]
		if err := errors.Join(wm.WritePacket(info(p), p.Data), wn.WritePacket(info(p), p.Data), wg.WritePacket(info(p), p.Data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := wg.Flush(); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string][]byte{"µs": micro.Bytes(), "ns": nano.Bytes(), "ng": ng.Bytes()} {
		res := readBytes(t, p, Options{})
		if len(res.packets) != len(ps) || res.total != 0 {
			t.Fatalf("%s: %d packets, %v", name, len(res.packets), res.problems)
		}
		var src packetSource
		if name == "ng" {
			src, err = pcapgo.NewNgReader(bytes.NewReader(p), pcapgo.NgReaderOptions{})
		} else {
			src, err = pcapgo.NewReader(bytes.NewReader(p))
		}
		if err != nil {
			t.Fatal(err)
		}
		compare(t, src, res.packets)
	}
}
