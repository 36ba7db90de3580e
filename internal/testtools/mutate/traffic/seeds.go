// Package traffic gives fuzz targets captures that are nearly real: a few packets of the samples, changed as
// a program of package mutate says, with lengths, ICRC and CRC32C corrected again, so that what was changed
// gets past them.
package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// seed is a choice of packets of a sample. Few packets are changed with more
// effect, and faster.
type seed struct {
	name   string
	file   string
	ranges [][2]int // packet numbers, both included
	as     func(*capture.Packet) bool
}

var seeds = []seed{
	{name: "CM, EXCHANGE_ID with Reply chunk", file: "rocev2-nfs41-recall.pcap", ranges: [][2]int{{1, 16}}},
	{name: "OPEN, READ with Write chunk", file: "rocev2-nfs41-recall.pcap", ranges: [][2]int{{1, 7}, {104, 107}, {122, 133}}},
	{name: "CB_RECALL", file: "rocev2-nfs41-recall.pcap", ranges: [][2]int{{1, 7}, {169, 191}}},
	{name: "CLOSE, end of the connection", file: "rocev2-nfs41-recall.pcap", ranges: [][2]int{{249, 254}, {268, 281}}},
	{name: "iWARP: MPA, EXCHANGE_ID", file: "iwarp-nfs41-recall.pcap", ranges: [][2]int{{1, 19}}},
	{name: "iWARP: READ", file: "iwarp-nfs41-recall.pcap", ranges: [][2]int{{1, 12}, {139, 154}}},
	{name: "iWARP: CB_RECALL, end", file: "iwarp-nfs41-recall.pcap", ranges: [][2]int{{1, 12}, {158, 169}, {259, 267}}},
	{name: "TCP: GETPORT, MNT", file: "rocev2-nfs3-longcall.pcap", ranges: [][2]int{{1, 27}}},
	{name: "SYMLINK with Read chunk, GETACL", file: "rocev2-nfs3-longcall.pcap", ranges: [][2]int{{26, 33}, {62, 70}, {93, 97}}},
	{name: "SETACL as a long call, reconnected", file: "rocev2-nfs3-longcall.pcap", ranges: [][2]int{{98, 127}}},
	{name: "rping", file: "rocev2-rping.pcap", ranges: [][2]int{{1, 26}}},
	{name: "MKDIR with losses, two taps", file: "rocev2-nfs3-loss.both.pcapng.zst", ranges: [][2]int{{113, 141}}},
	{name: "WRITE with losses, two taps", file: "rocev2-nfs3-loss.both.pcapng.zst", ranges: [][2]int{{199, 225}}},
	{name: "iWARP: MPA with CRC, NFSv3", file: "iwarp-nfs3-crc.pcap.zst", ranges: [][2]int{{24, 42}, {50, 58}}},
	{name: "IPv6: CM, WRITE", file: "rocev2-nfs41-ipv6.pcap.zst", ranges: [][2]int{{1, 13}, {120, 127}, {150, 162}}},
	{name: "cut frames", file: "rocev2-nfs3-snaplen256.pcap.zst", ranges: [][2]int{{26, 33}, {62, 71}, {482, 489}}},
	{name: "iWARP without MPA", file: "iwarp-nfs41-midstream.pcap.zst", ranges: [][2]int{{1, 20}}},
	{name: "iWARP: losses", file: "iwarp-nfs3-loss.pcap.zst", ranges: [][2]int{{1176, 1199}}},
	{name: "NFSv4.2: ALLOCATE, COPY, GETXATTR", file: "rocev2-nfs42-basic.pcap.zst", ranges: [][2]int{{3484, 3495}, {3508, 3511}, {3529, 3532}, {3617, 3620}, {3654, 3669}}},
	{name: "NFSv4.0: SETCLIENTID, callbacks over TCP", file: "iwarp-nfs40-basic.pcap.zst", ranges: [][2]int{{1, 26}}},
	{name: "NFSv4.0: OPEN_CONFIRM, LOCK, long SETATTR", file: "iwarp-nfs40-basic.pcap.zst", ranges: [][2]int{{84, 93}, {4180, 4189}, {4231, 4242}}},
	{name: "server stopped, connection rejected", file: "rocev2-nfs41-restart.pcap.zst", ranges: [][2]int{{431, 456}}},
	{name: "NFSv3: SYMLINK, NLM over TCP", file: "rocev2-nfs3-basic.pcap.zst", ranges: [][2]int{{4861, 4872}, {5018, 5036}}},
	{name: "UDP: GETPORT", file: "rocev2-nfs3-longcall.pcap", ranges: [][2]int{{8, 8}, {10, 10}, {18, 18}, {20, 20}, {22, 22}, {23, 23}}, as: asUDP},
	{name: "RoCEv1", file: "rocev2-nfs41-recall.pcap", ranges: [][2]int{{1, 7}, {104, 107}, {122, 133}}, as: asRoCEv1},
	{name: "InfiniBand", file: "rocev2-nfs41-recall.pcap", ranges: [][2]int{{1, 7}, {104, 107}, {122, 133}}, as: asInfiniBand},
}

// Names are the names of the captures to start from; their index is what Apply takes.
func Names() []string {
	names := make([]string, len(seeds))
	for i := range seeds {
		names[i] = seeds[i].name
	}
	return names
}

// Count is how many captures there are to start from.
func Count() int { return len(seeds) }

var load = sync.OnceValues(loadAll)

// loadAll reads the packets of all seeds. Files are read as far as needed.
func loadAll() ([][]item, error) {
	dir, err := samples()
	if err != nil {
		return nil, err
	}
	files := map[string][]capture.Packet{}
	last := map[string]int{}
	for i := range seeds {
		for _, r := range seeds[i].ranges {
			last[seeds[i].file] = max(last[seeds[i].file], r[1])
		}
	}
	all := make([][]item, len(seeds))
	for i := range seeds {
		s := &seeds[i]
		packets, ok := files[s.file]
		if !ok {
			if packets, err = read(filepath.Join(dir, s.file), last[s.file]); err != nil {
				return nil, err
			}
			files[s.file] = packets
		}
		for _, r := range s.ranges {
			for _, p := range packets[r[0]-1 : r[1]] {
				if s.as != nil && !s.as(&p) {
					continue
				}
				it := newItem(p)
				if it.net < 0 && i > 0 {
					continue // ARP: one seed with it is enough
				}
				all[i] = append(all[i], it)
			}
		}
	}
	return all, nil
}

// samples is the folder of the samples, seen from any package of the module.
func samples() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for range 16 {
		if s := filepath.Join(dir, "samples"); isDir(s) {
			return s, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("no folder samples above the working directory")
}

func isDir(name string) bool {
	i, err := os.Stat(name)
	return err == nil && i.IsDir()
}

// read returns the first n packets of a capture.
func read(name string, n int) ([]capture.Packet, error) {
	r, err := capture.Open([]string{name}, capture.Options{BatchSize: 64 << 10})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var list []capture.Packet
	var b capture.Batch
	for len(list) < n {
		if err := r.Read(&b); errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %d packets, not %d", name, len(list), n)
		} else if err != nil {
			return nil, err
		}
		for _, p := range b.Packets[:min(len(b.Packets), n-len(list))] {
			p.Data = append([]byte(nil), p.Data...)
			p.Data = p.Data[:len(p.Data):len(p.Data)]
			list = append(list, p)
		}
	}
	return list, nil
}

// asUDP makes a datagram of an RPC record in a TCP segment. The samples have no
// RPC over UDP.
func asUDP(p *capture.Packet) bool {
	var f link.Frame
	link.Decode(p.Link, p.Data, p.Length, &f)
	if f.Proto != link.TCP || len(f.Payload) < 8 || len(f.Net) != 20 {
		return false
	}
	const udpSize = 8
	rpc := f.Payload[4:] // after the record mark
	b := append([]byte(nil), p.Data[:14]...)
	at := len(b)
	b = append(b, f.Net...)
	b[at+9] = 17
	binary.BigEndian.PutUint16(b[at+2:], uint16(20+udpSize+len(rpc)))
	b = binary.BigEndian.AppendUint16(b, f.SrcPort)
	b = binary.BigEndian.AppendUint16(b, f.DstPort)
	b = binary.BigEndian.AppendUint16(b, uint16(udpSize+len(rpc)))
	b = append(append(b, 0, 0), rpc...)
	p.Data, p.Length = b, uint32(len(b))
	return true
}

// grh is the header that takes the place of IPv4 and UDP, before n bytes.
func grh(f *link.Frame, n int) []byte {
	b := []byte{0x60, 0, 0, 0, byte(n >> 8), byte(n), 0x1b, 64}
	src, dst := f.Src.As16(), f.Dst.As16()
	return append(append(b, src[:]...), dst[:]...)
}

// rocePayload is the InfiniBand packet in a frame of RoCEv2.
func rocePayload(p *capture.Packet, f *link.Frame) []byte {
	link.Decode(p.Link, p.Data, p.Length, f)
	if f.Proto != link.UDP || f.DstPort != 4791 || len(f.Payload) < roce.BTHSize+roce.ICRCSize {
		return nil
	}
	return f.Payload
}

// asRoCEv1 makes a packet of RoCEv1 out of one of RoCEv2.
func asRoCEv1(p *capture.Packet) bool {
	var f link.Frame
	ib := rocePayload(p, &f)
	if ib == nil {
		return false
	}
	b := append([]byte(nil), p.Data[:12]...)
	b = append(b, 0x89, 0x15)
	b = append(append(b, grh(&f, len(ib))...), ib...)
	p.Data, p.Length = b, uint32(len(b))
	sealICRC(p)
	return true
}

// asInfiniBand makes a packet of an InfiniBand network out of one of RoCEv2.
func asInfiniBand(p *capture.Packet) bool {
	var f link.Frame
	ib := rocePayload(p, &f)
	if ib == nil {
		return false
	}
	words := (roce.LRHSize + roce.GRHSize + len(ib)) / 4 // from the LRH through the ICRC
	src, dst := f.Src.As16(), f.Dst.As16()
	b := []byte{0, 3, 0, dst[15], byte(words >> 8 & 7), byte(words), 0, src[15]}
	b = append(append(b, grh(&f, len(ib))...), ib...)
	b = append(b, 0, 0) // VCRC
	p.Link, p.Data, p.Length = capture.LinkInfiniBand, b, uint32(len(b))
	sealICRC(p)
	return true
}
