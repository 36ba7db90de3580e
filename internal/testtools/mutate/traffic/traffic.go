package traffic

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
)

// Limits of what Apply makes.
const (
	MaxPackets = 96
	MaxPacket  = 9100 // bytes
	MaxBytes   = 160 << 10
)

// Changes of packets, after those of the words of a payload.
const (
	Drop          = mutate.Words + iota // a packet
	DropRun                             // several that follow each other
	Double                              // a packet, the copy some packets later
	Swap                                // two packets
	Delay                               // a packet, after others
	Advance                             // a packet, before others
	Warp                                // the time of a packet
	WarpRest                            // the time of a packet and of all after it
	Cut                                 // what was captured of a packet
	Snap                                // what was captured of all packets from here on
	Grow                                // a payload
	Shrink                              // a payload
	CopyBytes                           // from another packet's payload
	Splice                              // packets of another capture
	Reverse                             // who sent a packet
	Elsewhere                           // all packets from here on: between other hosts
	CloneFlow                           // some packets once more, between other hosts
	Tap                                 // where a packet was captured
	Raw                                 // no length or checksum of a packet is put right
	Header                              // a bit of the headers below
	Transport                           // opcode, PSN, queue pair; or sequence numbers and flags of TCP
	CopyTransport                       // the same from another packet
	Resegment                           // a TCP segment in two, or two in one
	Captured                            // the link type
	packetChanges
)

// Apply changes a capture as a program says. which counts captures to start
// from round. The packets that come out are numbered from 1; their data must not
// be written.
func Apply(which uint8, program []byte) []capture.Packet {
	all, err := load()
	if err != nil {
		panic(err) // the samples are part of the repository
	}
	s := stage{all: all, list: append(make([]item, 0, MaxPackets), all[int(which)%len(all)]...)}
	for i := range s.list {
		s.size += len(s.list[i].Data)
	}
	mutate.Steps(program, s.step)
	out := make([]capture.Packet, len(s.list))
	for i := range s.list {
		it := &s.list[i]
		if it.mine {
			it.seal()
		}
		out[i] = it.Packet
		out[i].Number = uint64(i + 1)
		out[i].Length = max(out[i].Length, uint32(len(out[i].Data)))
	}
	return out
}

// stage is a capture while it is changed.
type stage struct {
	all  [][]item
	list []item
	size int
}

// own makes the data of a packet writable.
func (s *stage) own(i int) *item {
	it := &s.list[i]
	if !it.mine {
		it.Data = append([]byte(nil), it.Data...)
		it.mine = true
	}
	return it
}

// body is the payload of a packet.
func (it *item) body() []byte { return it.Data[min(it.payload, len(it.Data)):] }

// lower is the packet from its network header on; empty without one.
func (it *item) lower() []byte {
	if it.net < 0 {
		return nil
	}
	return it.Data[min(it.net, len(it.Data)):]
}

// insert puts a packet before the i-th. It shares its data.
func (s *stage) insert(i int, it item) {
	if len(s.list) >= MaxPackets || s.size+len(it.Data) > MaxBytes {
		return
	}
	it.mine = false
	s.size += len(it.Data)
	s.list = append(s.list, item{})
	copy(s.list[i+1:], s.list[i:])
	s.list[i] = it
}

func (s *stage) remove(i, n int) {
	for j := i; j < i+n; j++ {
		s.size -= len(s.list[j].Data)
	}
	s.list = append(s.list[:i], s.list[i+n:]...)
}

// resize gives a packet other data after its headers.
func (it *item) resize(body []byte) int {
	before := len(it.Data)
	head := it.Data[:min(it.payload, len(it.Data))]
	it.Data = append(append(make([]byte, 0, len(head)+len(body)), head...), body...)
	d := len(it.Data) - before
	it.longer += d
	it.Length = uint32(max(int64(it.Length)+int64(d), int64(len(it.Data))))
	it.mine = true
	return d
}

func (s *stage) step(x mutate.Step) bool {
	n := len(s.list)
	if n == 0 {
		return false
	}
	i, j := x.Index(n), x.Second(n)
	op := int(x.Op) % packetChanges
	if change := changes[op]; change != nil {
		change(s, x, i, j)
	} else { // a word
		mutate.Word(s.own(i).body(), op, x, s.list[j].body())
	}
	return true
}

// changes has the methods of all changes but those of a word. They get two
// packets: i is changed, from j something may be taken.
var changes = [packetChanges]func(s *stage, x mutate.Step, i, j int){
	Drop:          func(s *stage, _ mutate.Step, i, _ int) { s.remove(i, 1) },
	DropRun:       func(s *stage, x mutate.Step, i, _ int) { s.remove(i, min(len(s.list)-i, 1+int(x.Value&7))) },
	Double:        (*stage).double,
	Swap:          (*stage).swap,
	Delay:         func(s *stage, x mutate.Step, i, _ int) { s.shift(x, i, min(len(s.list)-1, i+1+int(x.Value&15))) },
	Advance:       func(s *stage, x mutate.Step, i, _ int) { s.shift(x, i, max(0, i-1-int(x.Value&15))) },
	Warp:          func(s *stage, x mutate.Step, i, _ int) { s.warp(x, i, i+1) },
	WarpRest:      func(s *stage, x mutate.Step, i, _ int) { s.warp(x, i, len(s.list)) },
	Cut:           func(s *stage, x mutate.Step, i, _ int) { s.cut(i, int(x.Where)%(len(s.list[i].Data)+1)) },
	Snap:          (*stage).snap,
	Grow:          (*stage).grow,
	Shrink:        (*stage).shrink,
	CopyBytes:     func(s *stage, x mutate.Step, i, j int) { mutate.Copy(s.own(i).body(), x, s.list[j].body()) },
	Splice:        (*stage).splice,
	Reverse:       func(s *stage, _ mutate.Step, i, _ int) { s.own(i).reverse() },
	Elsewhere:     (*stage).elsewhere,
	CloneFlow:     (*stage).cloneFlow,
	Tap:           (*stage).tap,
	Raw:           func(s *stage, _ mutate.Step, i, _ int) { s.own(i).raw = true },
	Header:        (*stage).header,
	Transport:     func(s *stage, x mutate.Step, i, _ int) { s.own(i).transport(x) },
	CopyTransport: (*stage).copyTransport,
	Resegment:     func(s *stage, x mutate.Step, i, _ int) { s.resegment(i, x) },
	Captured:      func(s *stage, x mutate.Step, i, _ int) { s.list[i].Link = links[x.Value&7] },
}

// links are what a packet may claim to have been captured as.
var links = [8]capture.LinkType{
	capture.LinkEthernet, capture.LinkRaw, capture.LinkSLL, capture.LinkSLL2, capture.LinkERF, capture.LinkInfiniBand, capture.LinkNull, capture.LinkIPv4,
}

func (s *stage) double(x mutate.Step, i, _ int) {
	s.share(i)
	it := s.list[i]
	at := min(len(s.list), i+1+int(x.Value&15))
	it.Time = s.list[at-1].Time + int64(x.Value>>8&0xff)
	s.insert(at, it)
}

func (s *stage) swap(x mutate.Step, i, j int) {
	s.list[i], s.list[j] = s.list[j], s.list[i]
	if x.Value&1 == 0 { // as a capture with its times in order would have them
		s.list[i].Time, s.list[j].Time = s.list[j].Time, s.list[i].Time
	}
}

// shift puts packet i at another place.
func (s *stage) shift(x mutate.Step, i, to int) {
	it := s.list[i]
	if x.Value&16 == 0 {
		it.Time = s.list[to].Time
	}
	s.list = append(s.list[:i], s.list[i+1:]...)
	s.list = append(s.list, item{})
	copy(s.list[to+1:], s.list[to:])
	s.list[to] = it
}

// warp changes the times of packets [i, end).
func (s *stage) warp(x mutate.Step, i, end int) {
	for k := i; k < end; k++ {
		s.list[k].Time += x.Duration()
	}
}

func (s *stage) snap(x mutate.Step, i, _ int) {
	for k := i; k < len(s.list); k++ {
		s.cut(k, 14+int(x.Where&0x1ff))
	}
}

func (s *stage) grow(x mutate.Step, i, j int) {
	it := s.own(i)
	room := min(MaxPacket, len(it.Data)+MaxBytes-s.size) - it.payload
	s.size += it.resize(mutate.Grow(it.body(), x, s.list[j].body(), room))
}

func (s *stage) shrink(x mutate.Step, i, _ int) {
	it := s.own(i)
	s.size += it.resize(mutate.Shrink(it.body(), x))
}

func (s *stage) splice(x mutate.Step, i, _ int) {
	other := s.all[int(x.Where)%len(s.all)]
	from := int(x.Value&0xff) % len(other)
	shift := s.list[i].Time - other[from].Time
	for k, it := range other[from:min(len(other), from+1+int(x.Value>>8&15))] {
		it.Time += shift
		s.insert(min(len(s.list), i+k), it)
	}
}

func (s *stage) elsewhere(x mutate.Step, i, _ int) {
	for k := i; k < len(s.list); k++ {
		if x.Value&2 == 0 || s.list[k].tcp == s.list[i].tcp {
			s.own(k).move(byte(x.Value>>8), x.Value&1 != 0)
		}
	}
}

func (s *stage) cloneFlow(x mutate.Step, i, _ int) {
	for k := range min(len(s.list)-i, 1+int(x.Where&15)) {
		s.share(i + k)
		it := s.list[i+k]
		it.Data = append([]byte(nil), it.Data...)
		it.move(byte(x.Value>>8), x.Value&1 != 0)
		it.seal()
		s.insert(len(s.list), it)
	}
}

func (s *stage) tap(x mutate.Step, i, _ int) {
	for k := i; k < min(len(s.list), i+1+int(x.Where&15)); k++ {
		s.list[k].Tap = uint16(x.Value & 3)
	}
}

func (s *stage) header(x mutate.Step, i, _ int) {
	it := s.own(i)
	if h := min(it.payload, len(it.Data)); h > 0 {
		it.Data[int(x.Where)%h] ^= byte(x.Value) | 1<<(x.Value>>8&7)
	}
}

func (s *stage) copyTransport(_ mutate.Step, i, j int) {
	it, from := s.own(i), &s.list[j]
	a, b := it.transportHeader(), from.transportHeader()
	if it.tcp == from.tcp {
		copy(a, b)
	}
}

// share makes sure that nothing is written to data that two packets will have.
func (s *stage) share(i int) {
	it := &s.list[i]
	if it.mine {
		it.seal()
		it.longer = 0
		it.mine = false
	}
}

func (s *stage) cut(i, n int) {
	it := &s.list[i]
	if n < len(it.Data) {
		s.size -= len(it.Data) - n
		it.Data = it.Data[:n:n]
	}
}

// move puts a packet between other hosts, or on other ports.
func (it *item) move(by byte, ports bool) {
	net := it.lower()
	switch {
	case len(net) == 0:
	case ports && it.upper > 0 && len(it.Data) >= it.upper+4:
		it.Data[it.upper+1] ^= by // the source's: RoCEv2 is known by the other one
		if it.tcp {
			it.Data[it.upper+3] ^= by
		}
	case it.Link == capture.LinkInfiniBand:
		if len(net) >= roce.LRHSize+roce.GRHSize {
			net[3] ^= by
			net[7] ^= by
			net[roce.LRHSize+23] ^= by
			net[roce.LRHSize+39] ^= by
		}
	case net[0]>>4 == 4 && len(net) >= 20:
		net[15] ^= by
		net[19] ^= by
	case len(net) >= 40:
		net[23] ^= by
		net[39] ^= by
	}
}

// reverse swaps source and destination.
func (it *item) reverse() {
	net := it.lower()
	swap := func(at, n int) {
		if len(net) < at+2*n {
			return
		}
		for k := range n {
			net[at+k], net[at+n+k] = net[at+n+k], net[at+k]
		}
	}
	switch {
	case len(net) == 0 || it.Link == capture.LinkInfiniBand:
		return
	case net[0]>>4 == 4:
		swap(12, 4)
	default:
		swap(8, 16)
	}
	if it.tcp && it.upper > 0 {
		net = it.Data[min(it.upper, len(it.Data)):]
		swap(0, 2)
	}
}

// transportHeader is what a fabric knows a packet's place by: the BTH, or TCP's
// sequence numbers, flags and window.
func (it *item) transportHeader() []byte {
	if it.tcp {
		at := min(it.upper+4, len(it.Data))
		return it.Data[at:min(at+12, len(it.Data))]
	}
	b := it.body()
	return b[:min(len(b), roce.BTHSize)]
}

func (it *item) transport(x mutate.Step) {
	h := it.transportHeader()
	if len(h) < 12 {
		return
	}
	delta := uint32(int32(int8(x.Value)))
	if x.Value>>8&7 == 7 {
		delta = x.Value >> 8
	}
	add := func(b []byte) { binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)+delta) }
	if it.tcp {
		switch x.Where & 3 {
		case 0, 1:
			add(h) // sequence number
		case 2:
			add(h[4:]) // acknowledgement
		default:
			h[9] = byte(x.Value) // flags
		}
		return
	}
	switch x.Where & 7 {
	case 0, 1:
		h[0] = byte(x.Value) % 0x18 // an opcode of reliable connections
	case 2:
		h[0] = byte(x.Value)
	case 3:
		h[1] = byte(x.Value) // solicited, migration, pad, version
	case 4:
		h[7] += byte(x.Value) // queue pair
	default:
		v := binary.BigEndian.Uint32(h[8:])
		binary.BigEndian.PutUint32(h[8:], v&0xff000000|(v+delta)&0xffffff)
		if x.Value>>16&3 == 3 {
			h[8] ^= 0x80 // wants an acknowledgement
		}
	}
}

// resegment cuts a TCP segment in two, or joins the next one to it.
func (s *stage) resegment(i int, x mutate.Step) {
	it := &s.list[i]
	body := it.body()
	if !it.tcp || len(body) < 2 || len(it.Data) < it.upper+8 || uint32(len(it.Data)) < it.Length {
		return
	}
	seq := binary.BigEndian.Uint32(it.Data[it.upper+4:])
	if x.Value&1 != 0 {
		for k := i + 1; k < len(s.list); k++ {
			next := &s.list[k]
			if !next.tcp || len(next.Data) < next.upper+8 || binary.BigEndian.Uint32(next.Data[next.upper+4:]) != seq+uint32(len(body)) {
				continue
			}
			if len(body)+len(next.body()) > MaxPacket {
				return
			}
			s.size += it.resize(append(append([]byte(nil), body...), next.body()...))
			s.remove(k, 1)
			return
		}
		return
	}
	at := 1 + int(x.Where)%(len(body)-1)
	second := *it
	second.Data = append([]byte(nil), it.Data...)
	second.longer = it.longer
	second.resize(append([]byte(nil), body[at:]...))
	binary.BigEndian.PutUint32(second.Data[second.upper+4:], seq+uint32(at))
	second.crc = false // it begins within an FPDU
	second.seal()
	second.longer = 0
	if len(s.list) >= MaxPackets {
		return
	}
	s.size += it.resize(append([]byte(nil), body[:at]...))
	s.insert(i+1, second)
}

// Reader returns packets in batches of a given size; the memory of a batch is overwritten by the next, as
// that of a file is.
type Reader struct {
	Packets []capture.Packet
	Batch   int // packets at once
}

// Read implements capture.Reader.
func (r *Reader) Read(b *capture.Batch) error {
	b.Reset()
	if len(r.Packets) == 0 {
		return io.EOF
	}
	n := min(max(r.Batch, 1), len(r.Packets))
	for _, p := range r.Packets[:n] {
		b.Append(p)
	}
	r.Packets = r.Packets[n:]
	return nil
}

// Problems implements capture.Reader.
func (*Reader) Problems() ([]*capture.Problem, int) { return nil, 0 }

// Close implements capture.Reader.
func (*Reader) Close() error { return nil }

// Decoder is what Run drives.
type Decoder interface {
	Batch(*capture.Batch)
	Flush()
}

var batches = sync.Pool{New: func() any { return new(capture.Batch) }}

// Run decodes packets on the calling goroutine, in batches of a given size: the coverage does not depend on
// how goroutines are scheduled, which Go's fuzzing engine could not tell from new coverage.
func Run(d Decoder, packets []capture.Packet, batch int) {
	b := batches.Get().(*capture.Batch)
	r := Reader{Packets: packets, Batch: batch}
	for r.Read(b) == nil {
		d.Batch(b)
	}
	d.Flush()
	batches.Put(b)
}
